// docs/governance-templates.md: its examples have the results that it says, and it lists exactly the functions that exist.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { parseYaml } from '../../values/yaml/index.ts';
import { compareStrings } from '../../go/index.ts';
import { parseLabelSelector } from '../../resources/index.ts';
import { isJsonObject, own, textOf, valueAt } from '../../values/index.ts';
import type { JsonObject, JsonValue } from '../../values/index.ts';
import { GOVERNANCE_FUNCTIONS } from './function-table.ts';
import {
  MAX_CHARACTERS,
  MAX_LIST_LENGTH,
  MAX_LOOKUPS,
  MAX_PATTERN_LENGTH,
  MAX_STEPS,
  MAX_TEMPLATE_LENGTH,
} from './rendering/limits.ts';
import { hasHubTemplates, namespaceGate, resolveHubTemplates, resolveTemplates } from './resolve-templates.ts';
import type { TemplateResolution } from './resolve-templates.ts';
import type { TemplateObjects } from './rendering/template-objects.ts';
import { UNSUPPORTED_FUNCTIONS } from './unknown-function.ts';

const page = readFileSync(join(import.meta.dirname, '../../../docs/governance-templates.md'), 'utf8');
const [objectsYaml = '', ...examples] = [...page.matchAll(/^```yaml\n(.*?)^```/gms)].map(([, yaml = '']) => yaml);
const OBJECTS = parseYaml(objectsYaml).filter(isJsonObject);

function metadataOf(object: JsonObject): JsonObject {
  const metadata = own(object, 'metadata');
  return isJsonObject(metadata) ? metadata : {};
}

function labelsOf(object: JsonObject): Record<string, string> {
  const labels = own(metadataOf(object), 'labels');
  return Object.fromEntries(
    Object.entries(isJsonObject(labels) ? labels : {}).map(([key, value]) => [key, textOf(value)]),
  );
}

const nameOf = (object: JsonObject): string => textOf(own(metadataOf(object), 'name'));
const isIn = (object: JsonObject, namespace: string): boolean =>
  textOf(own(metadataOf(object), 'namespace')) === namespace;

/** The objects of the page. */
const CLUSTER: TemplateObjects = {
  get: (_apiVersion, kind, namespace, name) => {
    const object = OBJECTS.find((one) => own(one, 'kind') === kind && isIn(one, namespace) && nameOf(one) === name);
    return object === undefined ? { state: 'absent' } : { state: 'found', object };
  },
  list: (_apiVersion, kind, namespace, selector) => ({
    state: 'found',
    objects: OBJECTS.filter(
      (one) =>
        own(one, 'kind') === kind &&
        (namespace === '' || isIn(one, namespace)) &&
        parseLabelSelector(selector).matches(labelsOf(one)),
    ).toSorted((a, b) => compareStrings(nameOf(a), nameOf(b))),
  }),
};

function resolution(source: JsonObject | string): TemplateResolution {
  return typeof source !== 'string' && hasHubTemplates(source)
    ? resolveHubTemplates(source, {
        objects: CLUSTER,
        context: { ManagedClusterName: 'local-cluster', PolicyMetadata: { name: 'web', namespace: 'app' } },
        mayRead: namespaceGate('app', 'local-cluster'),
        defaultNamespace: 'app',
      })
    : resolveTemplates(source, { objects: CLUSTER, context: { ObjectName: 'me' } });
}

function resolved(source: JsonObject | string): JsonValue {
  const result = resolution(source);
  assert.equal(result.state, 'resolved', result.state === 'failed' ? result.error.message : '');
  return result.state === 'resolved' ? result.value : null;
}

/** The cells of a table's row, without backquotes. */
function cellsOf(row: string): readonly string[] {
  return row
    .split(/(?<!\\)\|/)
    .slice(1, -1)
    .map((cell) => cell.replaceAll('\\|', '|').trim())
    .map((cell) => cell.replace(/^`` (.*) ``$|^`([^`]*)`$/, '$1$2'));
}

const functionRows = (page.split('\n## Functions\n')[1]?.split('\n## ')[0] ?? '')
  .split('\n')
  .filter((line) => line.startsWith('| `'));

function shown(value: JsonValue | undefined): string {
  return typeof value === 'string' ? value.replaceAll('\n', '\\n') : JSON.stringify(value);
}

describe('docs/governance-templates.md', () => {
  for (const row of functionRows) {
    const [name = '', , example = '', value] = cellsOf(row);
    test(`has the value of the example of ${name}`, () => {
      assert.ok(example.includes(name), `the example calls ${name}`);
      // A space at the start of inline code is not kept.
      const result = resolved({ data: { key: example } });
      assert.equal(shown(valueAt(result, 'data', 'key')), value);
    });
  }

  test('lists all functions, and no others', () => {
    const documented = functionRows.flatMap((row) => {
      const [name = '', text = ''] = cellsOf(row);
      const others = /Also (.*)$/.exec(text)?.[1] ?? '';
      return [name, ...[...others.matchAll(/`(\w+)`/g)].map(([, other = '']) => other)];
    });
    const twice = (name: string): string => `must${name.charAt(0).toUpperCase()}${name.slice(1)}`;
    const known = new Set([...documented, ...documented.map(twice)]);
    assert.deepEqual(
      [...GOVERNANCE_FUNCTIONS.keys()].filter((name) => !known.has(name)),
      [],
    );
    assert.deepEqual(
      documented.filter((name) => !GOVERNANCE_FUNCTIONS.has(name)),
      [],
    );
  });

  test('lists the functions that are not supported', () => {
    const last = page.split('These functions of OCM are not supported.')[1] ?? '';
    const rows = last.split('\n').filter((line) => line.startsWith('| `'));
    const named = rows.flatMap((row) => [...row.matchAll(/`(\w+)`/g)].map(([, name = '']) => name));
    assert.deepEqual(named.toSorted(), [...UNSUPPORTED_FUNCTIONS.keys()].toSorted());
  });

  for (let index = 0; index < examples.length; index += 2) {
    test(`has the result of example ${index / 2 + 1}`, () => {
      const [source] = parseYaml(examples[index] ?? '');
      const [result] = parseYaml(examples[index + 1] ?? '');
      assert.ok(isJsonObject(source));
      const raw = own(source, 'object-templates-raw');
      assert.deepEqual(resolved(typeof raw === 'string' ? raw : source), result);
    });
  }

  test('names the limits of the code', () => {
    for (const limit of [
      MAX_TEMPLATE_LENGTH,
      MAX_STEPS,
      MAX_CHARACTERS,
      MAX_LOOKUPS,
      MAX_LIST_LENGTH,
      MAX_PATTERN_LENGTH,
    ]) {
      assert.ok(page.includes(`| ${limit.toLocaleString('en-US')}`), String(limit));
    }
  });
});
