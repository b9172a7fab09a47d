"""The tensors of each family's layers: one file a family, holding one table `LAYER`."""
