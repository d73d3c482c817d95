"""The custody of a trial's records: how long names are kept, and the signed export of the whole trail."""
