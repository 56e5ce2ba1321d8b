"""TFRecord files, as Google's and MLCommons' builders write them."""
