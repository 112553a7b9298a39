"""Every figure and number of the paper: experiments as data, a runner that can be resumed, and a page of results."""
