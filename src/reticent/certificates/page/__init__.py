"""What people read of a certificate or an audit: words, answers, drawings and the page."""
