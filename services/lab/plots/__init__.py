"""Plots as SVG that stands in an HTML page: no script, colours by class from the page's own style."""
