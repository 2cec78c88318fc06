"""Base URLs as people write them."""

from __future__ import annotations

import pytest

from tests.web.site import BOTH, asking, saying, serving


@pytest.mark.parametrize("path", BOTH)
def test_a_base_url_with_its_version_once_too_often_leads_to_the_same_place(path: str) -> None:
    with serving(saying("x")) as site:
        assert site.client.post(f"/v1{path}", json=asking()).status_code == 200
        assert site.client.get("/v1/v1/models").json == site.client.get("/v1/models").json
