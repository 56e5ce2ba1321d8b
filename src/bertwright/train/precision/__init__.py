"""In which numbers a network computes; weights and moments are always float32."""
