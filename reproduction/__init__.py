"""Every figure and number of the paper: experiments as data, a runner that resumes, and a page about what came out."""
