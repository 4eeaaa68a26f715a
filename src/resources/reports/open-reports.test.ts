import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { it } from 'node:test';
import { load } from 'js-yaml';
import { compareStrings } from '../../go/index.ts';
import { isJsonObject, valueAt } from '../../values/index.ts';
import { REPORT_FORMATS, reportDefinitions } from './open-reports.ts';

const PUBLISHED = new URL('../../../test/fixtures/', import.meta.url);
/** Those of older releases: a later one added severities and merge keys. */
const ADDED_LATER = new Set(['x-kubernetes-map-type', 'x-kubernetes-list-type', 'enum']);

/** A schema without texts, in an order that does not count. */
function structure(schema: unknown): unknown {
  if (!isJsonObject(schema)) {
    return Array.isArray(schema) ? schema.map(String).toSorted(compareStrings) : schema;
  }
  const isProperties = !('type' in schema) || isJsonObject(schema['type']);
  return Object.fromEntries(
    Object.entries(schema)
      .filter(([key]) => isProperties || key !== 'description')
      .map(([key, value]) => [key, structure(value)]),
  );
}

/** What the releases of all APIs have in common. */
function common(schema: unknown): unknown {
  return JSON.parse(
    JSON.stringify(structure(schema), (key, value: unknown) => (ADDED_LATER.has(key) ? undefined : value)),
  );
}

for (const [name, format] of Object.entries(REPORT_FORMATS)) {
  const isExact = format === REPORT_FORMATS.openreports;
  it(`the definitions of ${name} have the published fields and types`, () => {
    const published = load(readFileSync(new URL(`${name}/report-fields.yaml`, PUBLISHED), 'utf8'));
    for (const definition of reportDefinitions(format)) {
      const [version] = valueAt(definition['spec'], 'versions') as readonly object[];
      const ours = valueAt(version, 'schema', 'openAPIV3Schema');
      assert.deepEqual(isExact ? structure(ours) : common(ours), isExact ? structure(published) : common(published));
    }
  });
}
