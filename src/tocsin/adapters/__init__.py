"""The world: the only place that imports a vendor. Siblings never import each other."""
