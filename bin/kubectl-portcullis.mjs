#!/usr/bin/env node
// The plugin of kubectl: `kubectl portcullis`. Commands in its output are those of the plugin.
process.env['PORTCULLIS_PROGRAM'] = 'kubectl portcullis';
await import('./portcullis.mjs');
