import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { SchemaValidator } from '../../resources/validation/index.ts';
import type { JsonValue } from '../values/json-text.ts';
import { parseYaml } from '../../values/yaml/index.ts';
import { builtinCatalogue } from './builtin-catalogue.ts';
import { PROVIDER_SCHEMA } from './catalogue-schema.ts';
import { parseCatalogue } from './read-catalogue.ts';

const FOLDER = new URL('catalogue/', import.meta.url);
const validator = new SchemaValidator();

function mistakes(document: unknown): readonly string[] {
  return [...validator.validate(document as JsonValue, PROVIDER_SCHEMA, '', undefined).problems].map(
    ({ text }) => text,
  );
}

function readerRefuses(document: unknown): boolean {
  try {
    parseCatalogue(JSON.stringify(document), 'a.yaml', builtinCatalogue());
    return false;
  } catch {
    return true;
  }
}

const row = { versions: '*', support: 'Supported', evidence: 'Inferred' };
const withRows = (...rows: readonly object[]) => ({ name: 'a', checked: '2026-11-21', features: { EndPort: rows } });

describe('the JSON schema of the catalogue', () => {
  for (const file of readdirSync(FOLDER)) {
    it(`accepts ${file}`, () => {
      const documents = parseYaml(readFileSync(new URL(file, FOLDER), 'utf8'));
      assert.ok(documents.length > 0);
      assert.deepEqual(documents.flatMap(mistakes), []);
    });
  }

  for (const [name, document] of [
    ['a provider alone', { name: 'a' }],
    ['a row', withRows(row)],
    ['a setting that is needed', withRows({ ...row, effect: 'Inert', requires: [{ setting: 'a', not: '' }] })],
    ['a caution about some uses', withRows({ ...row, caution: 'slow', cautionWhen: ['Egress'] })],
    ['uses that are not supported', withRows({ ...row, support: 'Partial', effect: 'FailOpen', when: ['Egress'] })],
    ['a source', withRows({ ...row, evidence: 'Code', sources: ['https://example.com/a'] })],
  ] as const) {
    it(`accepts ${name}, as the reader does`, () => {
      assert.deepEqual([mistakes(document), readerRefuses(document)], [[], false]);
    });
  }

  for (const [name, document] of [
    ['a list', []],
    ['no name', {}],
    ['a name in capitals', { name: 'A' }],
    ['an unknown key', { name: 'a', names: 'b' }],
    ['an unknown feature', { name: 'a', features: { EndPorts: [row] } }],
    ['no rows', withRows()],
    ['too many rows', withRows(...Array.from({ length: 65 }, () => row))],
    ['a range of npm', withRows({ ...row, versions: '^1.2.0' })],
    ['support that is none', withRows({ ...row, support: 'Yes' })],
    ['no evidence', withRows({ versions: '*', support: 'Supported' })],
    ['no effect', withRows({ ...row, support: 'Unsupported' })],
    ['a requirement without an effect', withRows({ ...row, requires: [{ setting: 'a', is: 'b' }] })],
    ['a requirement twice', withRows({ ...row, effect: 'Inert', requires: [{ setting: 'a', is: 'b', not: 'c' }] })],
    ['a requirement of nothing', withRows({ ...row, effect: 'Inert', requires: [{ setting: 'a' }] })],
    ['uses of what is supported', withRows({ ...row, when: ['Egress'] })],
    ['uses of a caution that is missing', withRows({ ...row, cautionWhen: ['Egress'] })],
    ['an unknown use of a caution', withRows({ ...row, caution: 'slow', cautionWhen: ['Egres'] })],
    ['an unknown use', withRows({ ...row, support: 'Partial', effect: 'Inert', when: ['Egres'] })],
    ['a limit of nothing', withRows({ ...row, limit: { entries: 0, per: 'CIDR' } })],
    ['no source of what is read', withRows({ ...row, evidence: 'Code' })],
    ['an empty list of sources', withRows({ ...row, evidence: 'Code', sources: [] })],
    ['a source that is no URL', withRows({ ...row, sources: ['somewhere'] })],
    ['a day that is none', { name: 'a', checked: '2026-13-01' }],
    ['an agent without a container', { name: 'a', detect: { agents: [{ images: ['b'] }] } }],
    ['a setting that is nowhere', { name: 'a', settings: { b: { default: 'c' } } }],
  ] as const) {
    it(`refuses ${name}, as the reader does`, () => {
      assert.deepEqual([mistakes(document).length > 0, readerRefuses(document)], [true, true]);
    });
  }
});
