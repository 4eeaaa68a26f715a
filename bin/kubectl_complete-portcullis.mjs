#!/usr/bin/env node
// Completions of the plugin, by the name that kubectl looks for.
process.argv.splice(2, 0, '__complete');
await import('./portcullis.mjs');
