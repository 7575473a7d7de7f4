"""A scored file summed up in one page of HTML that can be sent on."""
