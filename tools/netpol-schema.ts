// Writes the JSON schema of a provider in a catalogue. `--check` writes nothing, and fails when it is stale.
import { PROVIDER_SCHEMA, ROW_SCHEMA } from '../src/engine/network-policy/catalogue-schema.ts';
import { writeGenerated } from './generated-files.ts';

const schema = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title: 'NetworkPolicy provider of Portcullis',
  ...PROVIDER_SCHEMA,
  $defs: { row: ROW_SCHEMA },
};

/** The rows of all features have one definition. */
function shared(key: string, value: unknown): unknown {
  return key === 'items' && value === ROW_SCHEMA ? { $ref: '#/$defs/row' } : value;
}

writeGenerated({
  files: new Map([['docs/network-provider.schema.json', `${JSON.stringify(schema, shared, 2)}\n`]]),
  source: 'src/engine/network-policy/catalogue-schema.ts',
  tool: 'tools/netpol-schema.ts',
});
