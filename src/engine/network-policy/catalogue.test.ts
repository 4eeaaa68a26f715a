import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { parseYaml } from '../../values/yaml/index.ts';
import { builtinCatalogue } from './builtin-catalogue.ts';
import { Catalogue } from './catalogue.ts';
import { FEATURES } from './feature.ts';
import { parseProviderVersion } from './provider-version.ts';
import { parseCatalogue } from './read-catalogue.ts';
import { ProviderSupport } from './support.ts';

const FOLDER = new URL('catalogue/', import.meta.url);

describe('the catalogue', () => {
  const catalogue = builtinCatalogue();

  it('knows the providers of the field', () => {
    assert.ok(catalogue.providers.length >= 19);
    assert.deepEqual(new Set(catalogue.names).size, catalogue.names.length);
    const controllers = catalogue.providers.map(({ controllerName }) => controllerName);
    assert.equal(new Set(controllers).size, controllers.length, 'each has an entry of its own in statuses');
  });

  it('has a file for each provider, with its name', () => {
    for (const file of readdirSync(FOLDER)) {
      const [document] = parseYaml(readFileSync(new URL(file, FOLDER), 'utf8')) as { name: string }[];
      assert.equal(`${document?.name}.yaml`, file);
    }
  });

  for (const provider of catalogue.providers) {
    it(`says for each feature and version what ${provider.title} does`, () => {
      const enforcement = provider.features.Enforcement ?? [];
      const enforces = enforcement.some(({ support }) => support === 'Supported' || support === 'Partial');
      const missing = FEATURES.filter((feature) => provider.features[feature] === undefined);
      assert.deepEqual(missing, enforces ? [] : FEATURES.filter((feature) => feature !== 'Enforcement'));
    });

    it(`tells what is inferred about ${provider.title}, and names sources for the rest`, () => {
      for (const row of Object.values(provider.features).flat()) {
        assert.match(row.checked, /^\d{4}-\d\d-\d\d$/);
        assert.ok(row.sources.length > 0 || row.evidence === 'Inferred');
        assert.ok(row.note !== undefined || row.evidence !== 'Inferred', 'a note says from what it is inferred');
      }
    });

    it(`declares the settings that rows of ${provider.title} need`, () => {
      const needed = Object.values(provider.features)
        .flat()
        .flatMap(({ requires = [], limit }) =>
          [...requires.map(({ setting }) => setting), limit?.setting ?? []].flat(),
        );
      assert.deepEqual(
        needed.filter((setting) => !provider.settings.has(setting)),
        [],
      );
    });
  }

  it('ends at a version for each provider with ranges', () => {
    for (const { name, latest, features } of catalogue.providers) {
      const hasRanges = Object.values(features).some((rows) => rows.length > 1);
      assert.ok(!hasRanges || parseProviderVersion(latest ?? '') !== undefined, name);
    }
  });
});

const provider = (features: string): string => `name: example\nchecked: '2026-11-21'\nfeatures: ${features}`;
const row = (more: string): string =>
  provider(`{EndPort: [{versions: '*', support: Supported, evidence: Inferred, ${more}}]}`);

const defect = (fields: string): string =>
  `name: example\nchecked: '2026-11-21'\ndefects: [{${fields}, evidence: Inferred}]`;

describe('a catalogue file', () => {
  for (const [name, text, message] of [
    ['that is not YAML', 'a: [', /^mine\.yaml:1:\d+: not YAML: /],
    ['that is a list', '[]', /^mine\.yaml: expected a mapping, got a list/],
    ['without a name', 'features: {}', /^mine\.yaml: expected the key "name", which is missing$/],
    [
      'with a name in capitals',
      'name: Cilium',
      /mine\.yaml: name: expected lower-case letters, digits and -, got "Cilium"/,
    ],
    [
      'with an unknown feature',
      provider('{EndPorts: []}'),
      /features\.EndPorts: unknown key "EndPorts" in features: did you mean "EndPort"\?/,
    ],
    ['without rows', provider('{EndPort: []}'), /features\.EndPort: expected 1 to 64 rows, got 0/],
    [
      'with a range of npm',
      provider('{EndPort: [{versions: ^1.2.0, support: Supported, evidence: Inferred}]}'),
      /features\.EndPort\[0\]\.versions: expected \*, >=1\.2\.0/,
    ],
    [
      'with a hole',
      provider(
        "{EndPort: [{versions: <1.0.0, support: Unknown, evidence: Inferred}, {versions: '>=1.1.0', support: Supported, evidence: Inferred}]}",
      ),
      /features\.EndPort: no row covers the versions between "<1\.0\.0" and ">=1\.1\.0"/,
    ],
    [
      'with support of YAML 1.1',
      provider("{EndPort: [{versions: '*', support: yes, evidence: Inferred}]}"),
      /EndPort\[0\]\.support: expected text, got true/,
    ],
    [
      'without an effect',
      provider("{EndPort: [{versions: '*', support: Unsupported, evidence: Inferred}]}"),
      /EndPort\[0\]: expected the key "effect", one of FailClosed/,
    ],
    [
      'without a source',
      provider("{EndPort: [{versions: '*', support: Supported, evidence: Code}]}"),
      /EndPort\[0\]: expected at least one source for the evidence Code/,
    ],
    [
      'with a source that is no URL',
      row('sources: [somewhere]'),
      /EndPort\[0\]\.sources\[0\]: expected a URL that begins with https:/,
    ],
    [
      'with an unknown trait',
      row('when: [Egres]'),
      /EndPort\[0\]\.when\[0\]: expected one of .*: did you mean Egress\?/,
    ],
    [
      'with an unknown trait among several',
      row('effect: Inert, when: [Ingress, [Egress, WithPort]]'),
      /EndPort\[0\]\.when\[1\]: expected one of .*, got "WithPort": did you mean WithPorts\?/,
    ],
    [
      'with a fault without a feature',
      defect("versions: '*', effect: FailOpen, summary: allows all"),
      /defects\[0\]: expected the key "features", which is missing/,
    ],
    [
      'with a fault of an unknown feature',
      defect("features: [IpBlock], versions: '*', effect: FailOpen, summary: allows all"),
      /defects\[0\]\.features\[0\]: expected one of .*, got "IpBlock": did you mean IPBlock\?/,
    ],
    [
      'with an advisory that is none',
      defect("ids: [CVE-1], features: [IPBlock], versions: '*', effect: FailOpen, summary: allows all"),
      /defects\[0\]\.ids\[0\]: expected CVE-YEAR-NUMBER or GHSA-xxxx-xxxx-xxxx, got "CVE-1"/,
    ],
    [
      'with a fault that says nothing',
      defect("features: [IPBlock], versions: '*', effect: FailOpen"),
      /defects\[0\]: expected the key "summary", which is missing/,
    ],
    [
      'with a limit of nothing',
      row('limit: {entries: 0, per: CIDR}'),
      /EndPort\[0\]\.limit\.entries: expected a number of at least 1, got 0/,
    ],
    [
      'with two operators',
      row('effect: Inert, requires: [{setting: a, is: b, not: c}]'),
      /requires\[0\]: expected one of is, not and contains, got 2/,
    ],
    [
      'without a day',
      "name: example\nfeatures: {EndPort: [{versions: '*', support: Supported, evidence: Inferred}]}",
      /expected the day of the check in "checked"/,
    ],
    ['with a day that is none', "name: example\nchecked: '2026-13-01'", /checked: expected a day such as 2026-11-21/],
    [
      'that inherits from nothing',
      'name: example\ninherits: cillium',
      /inherits: expected the name of a provider before this one, got "cillium"/,
    ],
    ['that is too long', 'x'.repeat(1024 * 1024 + 1), /expected at most 1048576 characters/],
    ['with too many providers', '---\nname: a\n'.repeat(201), /expected at most 200 providers, got 201/],
  ] as const) {
    it(`${name} is refused with file and path`, () => {
      assert.throws(
        () => parseCatalogue(text, 'mine.yaml'),
        (error: { code?: string; message: string }) => {
          assert.equal(error.code, 'catalogue-invalid');
          assert.match(error.message, message);
          return true;
        },
      );
    });
  }

  it('lists all mistakes, and counts the documents', () => {
    assert.throws(
      () => parseCatalogue('name: a\n---\nname: B\nnames: c', 'mine.yaml'),
      /document 2: names: .*\nmine\.yaml, document 2: name: /,
    );
  });

  it('extends a provider: a feature replaces that of the provider, the others stay', () => {
    const base = builtinCatalogue();
    const text =
      "name: cilium\nlatest: 1.25.0\nchecked: '2026-11-22'\nfeatures: {EndPort: [{versions: '*', support: Unsupported, effect: FailOpen, evidence: Inferred}]}";
    const extended = base.extended(parseCatalogue(text, 'mine.yaml', base));
    const support = new ProviderSupport(extended.find('cilium')!, { name: 'cilium', version: '1.25.3' });
    assert.equal(support.of('EndPort', []).effect, 'FailOpen');
    assert.equal(support.of('IPBlock', []).status, 'True');
    assert.equal(base.find('cilium')?.latest, '1.20.2', 'the catalogue itself is unchanged');
  });

  it('adds a provider, which may start with the rows of another', () => {
    const base = builtinCatalogue();
    const own = base.extended(
      parseCatalogue('name: my-cilium\ninherits: cilium\ncontrollerName: example.com/mine', 'mine.yaml', base),
    );
    const support = new ProviderSupport(own.find('my-cilium')!, { name: 'my-cilium', version: '1.15.0' });
    assert.equal(support.label, 'my-cilium 1.15.0');
    assert.equal(support.of('EndPort', []).effect, 'FailClosed');
  });

  it('adds a provider of which nothing is known yet', () => {
    const own = new Catalogue([]).extended(parseCatalogue('name: new', 'mine.yaml'));
    const { status, reason } = new ProviderSupport(own.find('new')!, { name: 'new', version: '1.0.0' }).of(
      'Egress',
      [],
    );
    assert.deepEqual([status, reason], ['Unknown', 'NotInCatalogue']);
  });

  it('reads keys of Object.prototype as names', () => {
    assert.throws(
      () => parseCatalogue('name: a\n__proto__: {}\nfeatures: {constructor: []}', 'mine.yaml'),
      /unknown key/,
    );
    assert.deepEqual(
      [...(parseCatalogue('name: a\nsettings: {constructor: {where: x}}', 'mine.yaml')[0]?.settings ?? [])],
      [['constructor', { default: '', where: 'x' }]],
    );
  });
});
