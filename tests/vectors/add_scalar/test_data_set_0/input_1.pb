BwJ
V;