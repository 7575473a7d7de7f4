"""pandas: after `import emoglot.integrations.pandas`, every DataFrame has `frame.emoglot.score("text")`."""

from __future__ import annotations

from pandas.api.extensions import register_dataframe_accessor

from emoglot.integrations.accessor import Accessor

register_dataframe_accessor("emoglot")(Accessor)
