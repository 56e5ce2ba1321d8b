"""A network as an ONNX graph, written node by node from its configuration and its tensors."""
