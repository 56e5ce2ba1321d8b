"""TFRecord files of Google's and MLCommons' builders."""
