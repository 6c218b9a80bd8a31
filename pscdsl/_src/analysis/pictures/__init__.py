"""Pictures of typed programs: one graph, and a writer for each format.

`graph` builds the nodes, edges and boxes of programs. `model_explorer`, `graphviz` and `page` write
them as JSON, as DOT and as HTML; `layers` places the nodes of a page.
"""
