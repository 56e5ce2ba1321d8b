"""In which numbers a network computes; what the optimizer moves is always float32."""
