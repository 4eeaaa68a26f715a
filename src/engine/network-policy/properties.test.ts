import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import semver from 'semver';
import type { JsonObject, JsonValue } from '../values/json-text.ts';
import { parseYaml } from '../../values/yaml/index.ts';
import { builtinCatalogue } from './builtin-catalogue.ts';
import { FEATURE_TRAITS, FEATURES } from './feature.ts';
import { featureUses } from './feature-uses.ts';
import type { Feature } from './feature.ts';
import { readNetworkPolicy } from './network-policy.ts';
import { ProviderSupport } from './support.ts';
import type { ProviderInstance } from './support.ts';
import { analysePolicy, judgePolicy, severityOf } from './verdict.ts';
import type { ProviderVerdict } from './verdict.ts';
import { compareVerdicts } from './what-if.ts';

const RUNS = { numRuns: 300 };
/** The cluster is known, so that nothing only warns. */
const FACTS = { podCidrs: ['10.0.0.0/8'], nodeCidrs: ['192.168.0.0/16'] };

/** A part of a policy, and the features that it uses for certain. */
interface Part<T = JsonValue> {
  readonly value: T;
  readonly uses: readonly Feature[];
}

const part = (value: JsonValue, ...uses: readonly Feature[]): Part => ({ value, uses });
const usesOf = (parts: readonly Part<unknown>[]): readonly Feature[] => parts.flatMap(({ uses }) => uses);

const labels = fc.dictionary(fc.constantFrom('app', 'tier', 'example.com/team'), fc.constantFrom('a', 'b', ''), {
  maxKeys: 2,
});
const expressions = fc.array(
  fc.oneof(
    fc.record({
      key: fc.constantFrom('app', 'env'),
      operator: fc.constantFrom('In', 'NotIn'),
      values: fc.constant(['x', 'y']),
    }),
    fc.record({ key: fc.constantFrom('app', 'env'), operator: fc.constantFrom('Exists', 'DoesNotExist') }),
  ),
  { maxLength: 2 },
);
const selector = fc.record(
  { matchLabels: labels, matchExpressions: expressions },
  { requiredKeys: [] },
) as fc.Arbitrary<JsonObject>;

const blocks: readonly Part[] = [
  part({ cidr: '198.51.100.0/24' }, 'IPBlock'),
  part({ cidr: '198.51.100.0/24', except: ['198.51.100.0/28'] }, 'IPBlock', 'IPBlockExcept'),
  part({ cidr: '10.1.0.0/16' }, 'IPBlock', 'IPBlockOfPods'),
  part({ cidr: '192.168.3.0/24' }, 'IPBlock', 'IPBlockOfNodes'),
  part({ cidr: '2001:db8::/32', except: ['2001:db8:1::/48'] }, 'IPBlock', 'IPBlockExcept', 'IPv6'),
];

const peer: fc.Arbitrary<Part> = fc.oneof(
  fc.constantFrom(...blocks).map(({ value, uses }) => ({ value: { ipBlock: value }, uses })),
  selector.map((podSelector) => part({ podSelector })),
  selector.map((namespaceSelector) => part({ namespaceSelector }, 'NamespaceSelector')),
  fc
    .tuple(selector, selector)
    .map(([namespaceSelector, podSelector]) =>
      part({ namespaceSelector, podSelector }, 'NamespaceSelector', 'NamespaceAndPodSelector'),
    ),
);

const protocol = fc.option(fc.constantFrom('TCP', 'UDP', 'SCTP'), { nil: undefined });
const port: fc.Arbitrary<Part> = fc
  .tuple(
    protocol,
    fc.oneof(fc.constant(undefined), fc.integer({ min: 1, max: 60_000 }), fc.constantFrom('web', 'metrics')),
    fc.boolean(),
  )
  .map(([name, number, isRange]) => {
    const hasRange = isRange && typeof number === 'number';
    const value: JsonObject = {
      ...(name && { protocol: name }),
      ...(number !== undefined && { port: number }),
      ...(hasRange && { endPort: number + 5 }),
    };
    const uses: readonly (Feature | false)[] = [
      name === 'SCTP' && 'SCTP',
      number === undefined && 'PortWithoutNumber',
      typeof number === 'string' && 'NamedPort',
      hasRange && 'EndPort',
    ];
    return { value, uses: uses.filter((one) => one !== false) };
  });

function rule(peers: 'from' | 'to'): fc.Arbitrary<Part> {
  return fc
    .tuple(fc.array(peer, { maxLength: 3 }), fc.array(port, { maxLength: 3 }), fc.boolean())
    .map(([all, ports, isWritten]) => ({
      value: {
        ...(all.length > 0 || isWritten ? { [peers]: all.map(({ value }) => value) } : {}),
        ...(ports.length > 0 || isWritten ? { ports: ports.map(({ value }) => value) } : {}),
      },
      uses: usesOf([...all, ...ports]),
    }));
}

/** NetworkPolicies over the whole grammar of the API. */
const policy: fc.Arbitrary<Part<JsonObject>> = fc
  .record({
    podSelector: selector,
    types: fc.constantFrom<string[]>([], ['Ingress'], ['Egress'], ['Ingress', 'Egress']),
    ingress: fc.array(rule('from'), { maxLength: 3 }),
    egress: fc.array(rule('to'), { maxLength: 3 }),
  })
  .map(({ podSelector, types, ingress, egress }) => {
    const isIngress = types.length === 0 || types.includes('Ingress');
    const isEgress = types.length === 0 ? egress.length > 0 : types.includes('Egress');
    return {
      value: {
        podSelector,
        ...(types.length > 0 && { policyTypes: types }),
        ...(ingress.length > 0 && { ingress: ingress.map(({ value }) => value) }),
        ...(egress.length > 0 && { egress: egress.map(({ value }) => value) }),
      },
      uses: [
        'Enforcement',
        ...(isIngress ? (['Ingress', ...usesOf(ingress)] as const) : []),
        ...(isEgress ? (['Egress', ...usesOf(egress)] as const) : []),
      ],
    };
  });

const versions = [
  '0.1.0',
  '0.3.0',
  '1.0.0',
  '1.8.0',
  '1.12.0',
  '1.15.4',
  '1.20.0',
  '2.0.0',
  '2.5.0',
  '2.8.1',
  '3.5.0',
  '3.28.0',
  '20230101.0.0',
  '20250101.0.0',
  '99999999.0.0',
];
const instance: fc.Arbitrary<ProviderInstance> = fc.record({
  name: fc.constantFrom(...builtinCatalogue().names),
  version: fc.constantFrom(...versions),
});

/** Versions that support some uses of a feature and not others. */
const partialInstance: fc.Arbitrary<ProviderInstance> = fc.constantFrom(
  ...builtinCatalogue().providers.flatMap(({ name, features }) =>
    Object.values(features)
      .flat()
      .filter(({ when }) => when !== undefined)
      .map(({ versions: { spans } }) => ({ name, version: spans[0]?.from?.join('.') ?? '0.0.1' })),
  ),
);

/** Whether what happens differs by use: then a port beside others may make what happens less dangerous. */
function hasEffects({ name }: ProviderInstance): boolean {
  const { features = {} } = builtinCatalogue().find(name) ?? {};
  return Object.values(features).some((rows) => rows.some(({ effects }) => effects !== undefined));
}

function judge(spec: JsonValue, one: ProviderInstance): ProviderVerdict {
  const provider = builtinCatalogue().find(one.name);
  assert.ok(provider);
  const object: JsonObject = {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { name: 'p' },
    spec,
  };
  return judgePolicy(analysePolicy(readNetworkPolicy(object), FACTS), new ProviderSupport(provider, one));
}

/** What the catalogue files say, read without the code that is tested. */
const FILES = new Map(
  builtinCatalogue().names.map((name) => [
    name,
    (parseYaml(readFileSync(new URL(`catalogue/${name}.yaml`, import.meta.url), 'utf8')) as RawProvider[])[0],
  ]),
);
interface RawProvider {
  readonly inherits?: string;
  readonly latest?: string;
  readonly features: Readonly<Record<string, readonly { readonly versions: string; readonly support: string }[]>>;
}

/** Whether a row says that the feature may be supported in the version. */
function mayBeSupported({ name, version = '' }: ProviderInstance, feature: Feature): boolean {
  const file = FILES.get(name);
  const rows = file?.features[feature] ?? FILES.get(file?.inherits ?? '')?.features[feature] ?? [];
  const row = rows.find(({ versions: range }) => semver.satisfies(version, range));
  const isNewer =
    file?.latest !== undefined &&
    semver.gt(version, `${semver.coerce(file.latest)?.major ?? 0}.${semver.coerce(file.latest)?.minor ?? 0}.99999`);
  return row !== undefined && !isNewer && (row.support === 'Supported' || row.support === 'Partial');
}

describe('for any policy, provider and version', () => {
  it('nothing is accepted that the catalogue does not say is supported', () => {
    fc.assert(
      fc.property(policy, instance, ({ value, uses }, one) => {
        const isSupported = uses.every((feature) => mayBeSupported(one, feature));
        assert.ok(
          isSupported || judge(value, one).accepted !== 'True',
          `${JSON.stringify(value)} on ${one.name} ${one.version}`,
        );
      }),
      { numRuns: 2000 },
    );
  });

  it('every feature of the policy has its condition, and the policy is read completely', () => {
    fc.assert(
      fc.property(policy, instance, ({ value, uses }, one) => {
        const { features } = judge(value, one);
        const types = new Set(features.map(({ type }) => type));
        assert.ok(types.has('Enforcement') && !types.has('UnreadFields'));
        const isInert = features.length === 1 && features[0]?.status === 'False';
        assert.deepEqual(
          isInert ? [] : FEATURES.filter((feature) => uses.includes(feature) && !types.has(feature)),
          [],
        );
      }),
      RUNS,
    );
  });

  it('no use has a trait that its feature cannot have, so that the catalogue can be refused for it', () => {
    fc.assert(
      fc.property(policy, ({ value }) => {
        const strange = featureUses(readNetworkPolicy(value), FACTS).filter(({ feature, traits }) =>
          traits.some((trait) => !FEATURE_TRAITS[feature].includes(trait)),
        );
        assert.deepEqual(strange, []);
      }),
      RUNS,
    );
  });

  it('another rule, peer or port never makes a verdict better', () => {
    fc.assert(
      fc.property(
        policy,
        rule('from'),
        rule('to'),
        peer,
        port,
        fc.oneof(instance, partialInstance),
        ({ value }, from, to, more, another, one) => {
          const worst = (spec: JsonValue): number => {
            const { accepted, effect } = judge(spec, one);
            return severityOf({ accepted, ...(effect === undefined || hasEffects(one) ? {} : { effect }) });
          };
          const before = worst(value);
          const withRules = { ...value, ingress: [...listOf(value['ingress']), from.value] };
          const withEgress = { ...value, egress: [...listOf(value['egress']), to.value] };
          const [first, ...rest] = listOf(value['ingress']);
          const wider = first !== undefined && {
            ...value,
            ingress: [extended(first, more.value, another.value), ...rest],
          };
          for (const spec of [withRules, withEgress, ...(wider === false ? [] : [wider])]) {
            assert.ok(worst(spec) >= before, JSON.stringify(spec));
          }
        },
      ),
      RUNS,
    );
  });

  it('a field that is not known is never accepted, wherever it is', () => {
    fc.assert(
      fc.property(policy, instance, fc.nat(), ({ value }, one, seed) => {
        const places = mappingsOf(value);
        const spec = withField(value, places[seed % places.length] ?? []);
        assert.notEqual(judge(spec, one).accepted, 'True', JSON.stringify(spec));
      }),
      RUNS,
    );
  });

  it('a change from a provider to itself changes nothing', () => {
    fc.assert(
      fc.property(policy, instance, ({ value }, one) =>
        assert.deepEqual(compareVerdicts(judge(value, one), judge(value, one)), []),
      ),
      RUNS,
    );
  });

  it('a change is the opposite of the change back', () => {
    const opposite = {
      Fixes: ['Breaks', 'MayBreak'],
      MayFix: ['Breaks', 'MayBreak'],
      Breaks: ['Fixes', 'MayFix'],
      MayBreak: ['Fixes', 'MayFix', 'MayBreak'],
      Changes: ['Changes'],
    };
    fc.assert(
      fc.property(policy, instance, instance, ({ value }, from, to) => {
        const [there, back] = [
          compareVerdicts(judge(value, from), judge(value, to)),
          compareVerdicts(judge(value, to), judge(value, from)),
        ];
        assert.deepEqual(there.map(({ type }) => type).toSorted(), back.map(({ type }) => type).toSorted());
        for (const { type, change } of there) {
          const other = back.find((one) => one.type === type)?.change ?? 'Changes';
          assert.ok(opposite[change].includes(other), `${change} and ${other}`);
        }
      }),
      RUNS,
    );
  });

  it('any JSON is judged without an error, and only accepted when it is read completely', () => {
    fc.assert(
      fc.property(fc.jsonValue(), instance, (value, one) => {
        const verdict = judge(value as JsonValue, one);
        assert.equal(typeof verdict.message, 'string');
      }),
      RUNS,
    );
  });
});

function listOf(value: JsonValue | undefined): readonly JsonValue[] {
  return Array.isArray(value) ? value : [];
}

/** A rule with another peer and port, where it has some: to a rule without, both would be restrictions. */
function extended(value: JsonValue, more: JsonValue, another: JsonValue): JsonObject {
  const one = value as JsonObject;
  const [from, ports] = [listOf(one['from']), listOf(one['ports'])];
  return {
    ...one,
    ...(from.length > 0 && { from: [...from, more] }),
    ...(ports.length > 0 && { ports: [...ports, another] }),
  };
}

/** The paths of the mappings with a fixed set of keys. */
function mappingsOf(
  value: JsonValue,
  path: readonly (string | number)[] = [],
): readonly (readonly (string | number)[])[] {
  if (Array.isArray(value)) {
    return value.flatMap((one, index) => mappingsOf(one, [...path, index]));
  }
  if (typeof value !== 'object' || value === null || path.at(-1) === 'matchLabels') {
    return [];
  }
  return [path, ...Object.entries(value).flatMap(([key, one]) => mappingsOf(one, [...path, key]))];
}

function withField(value: JsonValue, [step, ...rest]: readonly (string | number)[]): JsonValue {
  if (step === undefined) {
    return { ...(value as JsonObject), fieldOfTheFuture: true };
  }
  if (Array.isArray(value)) {
    return value.map((one, index) => (index === step ? withField(one, rest) : one));
  }
  const object = value as JsonObject;
  return { ...object, [step]: withField(object[step] ?? null, rest) };
}
