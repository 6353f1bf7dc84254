"""`visavis soak`: many users for a long time, and a report of what they got.

`command` runs it, as `options` say; `lines` is what users say; `synthetic` and `chromium` are the users;
`resources` watches the server; `findings` is what came of it, `report` that as JSON, `page` as HTML.
"""
