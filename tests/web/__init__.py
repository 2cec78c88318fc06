"""The web tier, asked by Flask's test client, over real sockets and by the official SDKs."""
