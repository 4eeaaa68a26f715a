import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { parseYaml } from '../../../src/values/yaml/index.ts';
import { resolveTemplates, type TemplateObjects } from '../../../src/governance/templates/index.ts';
import type { JsonObject, JsonValue } from '../../../src/values/index.ts';

interface TemplateCase {
  readonly template: string;
  readonly result?: JsonValue;
  readonly error?: string;
}

const [CASES] = parseYaml(readFileSync(new URL('templates.yaml', import.meta.url), 'utf8')) as [
  readonly TemplateCase[],
];

const OBJECTS: Readonly<Record<string, JsonObject>> = {
  'Secret/kitchen/recipes': { apiVersion: 'v1', kind: 'Secret', data: { rye: 'ZmxvdXI=' } },
  'ConfigMap/kitchen/menu': { apiVersion: 'v1', kind: 'ConfigMap', data: { bread: 'rye' } },
};
const CLUSTER: TemplateObjects = {
  get: (_apiVersion, kind, namespace, name) => {
    const object = OBJECTS[`${kind}/${namespace}/${name}`];
    return object === undefined ? { state: 'absent' } : { state: 'found', object };
  },
  list: () => ({ state: 'found', objects: [] }),
};
const VARIABLES = { Shop: 'bakery', Number: '12345', Labels: { rye: 'bread' } };

describe('templates of Open Cluster Management', () => {
  for (const { template, result, error } of CASES) {
    it(`${JSON.stringify(template)} ${error === undefined ? `is ${JSON.stringify(result)}` : 'fails'}`, () => {
      const resolved = resolveTemplates({ data: { key: template } }, { objects: CLUSTER, context: VARIABLES });
      if (error === undefined) {
        assert.equal(resolved.state, 'resolved', resolved.state === 'failed' ? resolved.error.message : '');
        assert.deepEqual(resolved.state === 'resolved' ? resolved.value : undefined, { data: { key: result } });
      } else {
        assert.equal(resolved.state, 'failed');
        const message = resolved.state === 'failed' ? resolved.error.message : '';
        assert.ok(message.includes(error), message);
      }
    });
  }
});
