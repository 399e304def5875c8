"""The membership-inference game: random data, averaged gradients, the mu of GMIP."""
