By1J
X=<