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
const fault = {
  features: ['EndPort'],
  versions: '<1.2.0',
  effect: 'FailOpen',
  summary: 'allows more',
  evidence: 'Inferred',
};
const withDefect = (more: object) => ({ name: 'a', checked: '2026-11-21', defects: [{ ...fault, ...more }] });
const SETTINGS = { a: { default: '', where: 'ConfigMap a' } };
const withKubelet = (more: object) => ({
  name: 'a',
  detect: { kubeletVersions: [{ kubelet: '>=1.22.0', version: '>=1.9.0', ...more }] },
});
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
    [
      'a setting that is needed',
      { ...withRows({ ...row, effect: 'Inert', requires: [{ setting: 'a', not: '' }] }), settings: SETTINGS },
    ],
    ['a fault', withDefect({})],
    [
      'a fault of several release lines, with an advisory and uses that come together',
      withDefect({
        ids: ['CVE-2026-56743', 'GHSA-fm8w-2m5w-9j7r'],
        versions: '<1.2.0 || >=1.3.0 <1.3.4',
        when: [['Ingress', 'WithNumber'], 'Egress'],
        depends: 'the cluster is old',
        evidence: 'Code',
        sources: ['https://example.com/a'],
      }),
    ],
    ['a fault with a setting', { ...withDefect({ settings: [{ setting: 'a', is: 'b' }] }), settings: SETTINGS }],
    [
      'a setting that the provider inherits',
      { ...withDefect({ settings: [{ setting: 'enable-ipv6', is: 'true' }] }), inherits: 'cilium' },
    ],
    ['versions by kubelets', withKubelet({ namespace: 'b', sources: ['https://example.com/a'] })],
    ['an exact version by kubelets', withKubelet({ version: '4.10.0' })],
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
    ['a fault that nobody names', withDefect({ summary: '' })],
    ['a fault of no feature', withDefect({ features: [] })],
    ['a fault of no use', withDefect({ when: [] })],
    ['a use of no traits', withDefect({ when: [[]] })],
    ['a trait that does not exist among those that come together', withDefect({ when: [['Ingress', 'Ports']] })],
    ['a fault with an advisory that is none', withDefect({ ids: ['CVE-1'] })],
    ['a fault without a source', withDefect({ evidence: 'Code' })],
    ['a fault of a range of npm', withDefect({ versions: '~1.2.0' })],
    ['no uses that are not supported', withRows({ ...row, support: 'Partial', effect: 'Inert', when: [] })],
    ['kubelets with no version', withKubelet({ version: 'latest' })],
    ['kubelets of a range of npm', withKubelet({ kubelet: '^1.22.0' })],
    ['kubelets with a source that is no URL', withKubelet({ sources: ['somewhere'] })],
    ['a latest version that is none', { name: 'a', latest: 'stable' }],
    ['a day that is none', { name: 'a', checked: '2026-13-01' }],
    ['an agent without a container', { name: 'a', detect: { agents: [{ images: ['b'] }] } }],
    ['a setting that is nowhere', { name: 'a', settings: { b: { default: 'c' } } }],
  ] as const) {
    it(`refuses ${name}, as the reader does`, () => {
      assert.deepEqual([mistakes(document).length > 0, readerRefuses(document)], [true, true]);
    });
  }

  for (const [name, document] of [
    ['a fault', withDefect({ when: ['Egress', 'HostBits'] })],
    [
      'uses that come together in a fault',
      withDefect({ features: ['Ingress', 'EndPort'], when: [['AllowsNothing', 'SameStart']] }),
    ],
    ['a row', withRows({ ...row, support: 'Partial', effect: 'Inert', when: ['WithPorts'] })],
    ['a caution', withRows({ ...row, caution: 'slow', cautionWhen: ['AllowsNothing'] })],
    [
      'an effect',
      withRows({
        ...row,
        support: 'Unsupported',
        effect: 'Inert',
        effects: [{ uses: ['DoesNotExist'], effect: 'FailOpen' }],
      }),
    ],
  ] as const) {
    it(`cannot tell that ${name} has uses that its feature never has, which the reader refuses`, () => {
      assert.deepEqual([mistakes(document), readerRefuses(document)], [[], true]);
    });
  }

  for (const [name, document] of [
    ['a fault', withDefect({ settings: [{ setting: 'b', is: 'c' }] })],
    ['a row', withRows({ ...row, effect: 'Inert', requires: [{ setting: 'b', is: 'c' }] })],
    ['a limit', withRows({ ...row, limit: { entries: 1, setting: 'b' } })],
  ] as const) {
    it(`cannot tell that ${name} names a setting that does not exist, which the reader refuses`, () => {
      assert.deepEqual([mistakes(document), readerRefuses({ ...document, settings: SETTINGS })], [[], true]);
    });
  }
});
