"""polars: after `import emoglot.integrations.polars`, every DataFrame has `frame.emoglot.score("text")`."""

from __future__ import annotations

from polars.api import register_dataframe_namespace

from emoglot.integrations.accessor import Accessor

register_dataframe_namespace("emoglot")(Accessor)
