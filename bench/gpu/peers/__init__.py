"""What Sparkle's times on a card are held against: PyTorch, cuDNN and cuBLASLt, each opened where it is. scripts/gpu_peers.py
is the command over it."""
