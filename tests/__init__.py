"""The tests of bigbrain, mirroring its folders; `contracts/` holds the promises that several modules keep."""
