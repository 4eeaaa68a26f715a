import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type AdmissionPolicySpec, policyId, policyMatch, type PolicyMatch } from '../../resources/index.ts';
import { ConfigurationCoverage } from './configuration-coverage.ts';
import { bytesOf, configurationName, MAX_CONFIGURATION_BYTES } from './configuration-parts.ts';
import { MAX_NAMESPACE_GROUPS, MAX_NAMESPACES } from './namespace-groups.ts';
import { MAX_RULES, webhookConfigurations, type WebhookSettings } from './webhook-configurations.ts';
import type { Webhook, WebhookConfiguration } from './webhook-object.ts';

const SETTINGS: WebhookSettings = {
  policyServer: 'default',
  target: { url: 'https://localhost:8443', ca: 'PEM' },
  exemptNamespaces: ['kube-system'],
  identities: ['system:serviceaccount:portcullis:controller', 'system:serviceaccount:portcullis:policy-server-*'],
  productNamespace: 'portcullis',
};
const RULE = { apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] };
/** A rule for something that the product writes. */
const EVENTS = { ...RULE, apiGroups: ['', 'events.k8s.io'], resources: ['events'] };
const EXEMPT = {
  name: 'portcullis.dev/exempt-identities',
  expression:
    '!(request.userInfo.username in ["system:serviceaccount:portcullis:controller"] || request.userInfo.username.startsWith("system:serviceaccount:portcullis:policy-server-"))',
};

function match(name: string, spec: object = {}, namespace?: string, ownWebhook = false): PolicyMatch {
  const kind = namespace === undefined ? 'ClusterAdmissionPolicy' : 'AdmissionPolicy';
  const metadata = { name, ...(namespace === undefined ? {} : { namespace }) };
  const all = { mutating: false, rules: [RULE], timeoutSeconds: 10, ...spec } as unknown as AdmissionPolicySpec;
  return policyMatch({ kind, metadata, spec: all }, { productNamespace: 'portcullis', ownWebhook });
}

function made(matches: readonly PolicyMatch[], settings = SETTINGS): readonly WebhookConfiguration[] {
  return webhookConfigurations(matches, settings).configurations;
}

function webhooks(matches: readonly PolicyMatch[]): readonly Webhook[] {
  return made(matches).flatMap((one) => one.webhooks as readonly Webhook[]);
}

function pathOf({ clientConfig }: Webhook): string {
  return new URL((clientConfig as { readonly url: string }).url).pathname;
}

function namesOf(matches: readonly PolicyMatch[]): readonly string[] {
  return webhooks(matches).map(({ name }) => name);
}

const NOT_IN = (values: readonly string[]): object => ({
  key: 'kubernetes.io/metadata.name',
  operator: 'NotIn',
  values,
});

describe('webhookConfigurations', () => {
  it('makes no configurations without policies', () => {
    assert.deepEqual(made([]), []);
  });

  it('sets every field, leaving none to the defaults of API servers', () => {
    assert.deepEqual(made([match('p', { rules: [EVENTS] })]), [
      {
        apiVersion: 'admissionregistration.k8s.io/v1',
        kind: 'ValidatingWebhookConfiguration',
        metadata: {
          name: 'portcullis-default',
          labels: { 'app.kubernetes.io/managed-by': 'portcullis', 'portcullis.dev/policy-server': 'default' },
        },
        webhooks: [
          {
            name: 'validating.fail.equivalent.cluster.v1.portcullis.dev',
            admissionReviewVersions: ['v1'],
            clientConfig: {
              url: 'https://localhost:8443/admit/validating.fail.equivalent.cluster.v1',
              caBundle: 'UEVN',
            },
            rules: [{ ...EVENTS, scope: '*' }],
            failurePolicy: 'Fail',
            matchPolicy: 'Equivalent',
            matchConditions: [EXEMPT],
            objectSelector: {},
            namespaceSelector: { matchExpressions: [NOT_IN(['portcullis']), NOT_IN(['kube-system'])] },
            sideEffects: 'NoneOnDryRun',
            timeoutSeconds: 10,
          },
        ],
      },
    ]);
  });

  it('does not depend on the order of policies', () => {
    const all = [
      match('a', { rules: [{ ...RULE, operations: ['DELETE'] }], objectSelector: { matchLabels: { a: 'b', c: 'd' } } }),
      match('b', { objectSelector: { matchLabels: { c: 'd' } }, timeoutSeconds: 20 }),
      match('c', { mutating: true }),
      match('d', {}, 'shop'),
      match('e', { failurePolicy: 'Ignore' }, 'bank'),
      match('f', {}, 'bank', true),
    ];
    assert.deepEqual(made(all), made(all.toReversed()));
  });

  it('covers the union of the policies in a bucket, and no more', () => {
    const [webhook, ...others] = webhooks([
      match('a', { timeoutSeconds: 5, objectSelector: { matchLabels: { a: 'b', c: 'd' } } }),
      match('b', {
        timeoutSeconds: 20,
        rules: [{ ...RULE, resources: ['services'] }],
        objectSelector: { matchLabels: { a: 'b' } },
        matchConditions: [{ name: 'x', expression: 'true' }],
      }),
    ]);
    assert.deepEqual(others, []);
    assert.deepEqual(webhook?.rules, [{ ...RULE, resources: ['pods', 'services'], scope: '*' }]);
    assert.deepEqual([webhook.timeoutSeconds, webhook.objectSelector], [20, { matchLabels: { a: 'b' } }]);
    assert.deepEqual(webhook.matchConditions, undefined);
  });

  it('has mutating webhooks reinvoked when a later webhook changes the object', () => {
    const [configuration] = made([match('m', { mutating: true })]);
    assert.equal(configuration?.kind, 'MutatingWebhookConfiguration');
    assert.equal(webhooks([match('m', { mutating: true })])[0]?.reinvocationPolicy, 'IfNeeded');
  });

  it('names configurations so that mutating webhooks of namespaced policies of any server are called first', () => {
    const servers = ['0', 'a', 'default', 'own-kinds', `z${'z'.repeat(62)}`];
    const matches = [match('m', { mutating: true }), match('a', { mutating: true }, undefined, true)];
    const namespaced = [match('m', { mutating: true }, 'shop'), match('z', { mutating: true }, 'shop', true)];
    const all = servers.flatMap((policyServer) => made([...matches, ...namespaced], { ...SETTINGS, policyServer }));
    const called = all
      .toSorted(({ metadata: one }, { metadata: other }) => ((one.name ?? '') < (other.name ?? '') ? -1 : 1))
      .map(({ webhooks: list = [] }) => (list as readonly Webhook[]).map(({ name }) => name));
    const [first, last] = [called.slice(0, servers.length), called.slice(servers.length)].map((half) => half.flat());
    assert.deepEqual([first?.length, last?.length], [2 * servers.length, 2 * servers.length]);
    assert.ok(
      first?.every((name) => /\.namespaced\.|^kw\.ap\./.test(name)),
      first?.join(),
    );
    assert.ok(
      last?.every((name) => /\.cluster\.|^kw\.cap\./.test(name)),
      last?.join(),
    );
  });

  it("covers a namespace only by its own policies' rules", () => {
    const services = [{ ...RULE, resources: ['services'] }];
    const found = webhooks([
      match('a', {}, 'shop'),
      match('b', {}, 'bank'),
      match('c', { rules: services }, 'bank'),
      match('d', {}, 'farm'),
      match('e', { rules: services, failurePolicy: 'Ignore' }, 'farm'),
    ]).map(({ rules, namespaceSelector, failurePolicy }) => [
      failurePolicy,
      rules[0]?.resources,
      rules[0]?.scope,
      namespaceSelector.matchExpressions?.[0]?.values,
    ]);
    assert.deepEqual(
      new Set(found.map((one) => JSON.stringify(one))),
      new Set([
        '["Fail",["pods"],"Namespaced",["farm","shop"]]',
        '["Fail",["pods","services"],"Namespaced",["bank"]]',
        '["Ignore",["services"],"Namespaced",["farm"]]',
      ]),
    );
  });

  it('renames no webhook when a namespace is added', () => {
    const before = [match('a', {}, 'shop'), match('b', { rules: [{ ...RULE, resources: ['services'] }] }, 'bank')];
    const names = namesOf([...before, match('c', { rules: [{ ...RULE, resources: ['secrets'] }] }, 'aaa')]);
    assert.ok(namesOf(before).every((name) => names.includes(name)));
  });

  it('gives a policy its own webhook if an annotation or its content requires one', () => {
    const condition = { name: 'may', expression: 'authorizer.group("").resource("pods").check("get").allowed()' };
    for (const [one, name] of [
      [match('own', {}, undefined, true), 'kw.cap.own'],
      [match('who', { matchConditions: [condition] }), 'kw.cap.who'],
      [match('leases', { rules: [{ ...RULE, apiGroups: ['coordination.k8s.io'] }] }), 'kw.cap.leases'],
    ] as const) {
      const [webhook] = webhooks([one]);
      assert.equal(webhook?.name, `${name}.portcullis.dev`);
      assert.equal(pathOf(webhook), `/admit/validating.${name}`);
      assert.deepEqual(webhook.matchConditions ?? [], one.matchConditions);
    }
    const [webhook] = webhooks([match('own', { rules: [EVENTS], matchConditions: [condition] })]);
    assert.deepEqual(webhook?.matchConditions, [condition, EXEMPT]);
  });

  it('has a validating and a mutating webhook for a policy of which one revision mutates', () => {
    const own = (mutating: boolean): PolicyMatch => match('p', { mutating }, 'shop', true);
    const found = made([own(false), own(true)]).map(({ kind, webhooks: [webhook] = [] }) => [
      kind,
      (webhook as Webhook).name,
      pathOf(webhook as Webhook),
    ]);
    assert.deepEqual(found, [
      ['ValidatingWebhookConfiguration', 'kw.ap.shop.p.portcullis.dev', '/admit/validating.kw.ap.shop.p'],
      ['MutatingWebhookConfiguration', 'kw.ap.shop.p.portcullis.dev', '/admit/mutating.kw.ap.shop.p'],
    ]);
  });

  it('uses paths that are valid for a Service, however long the name of a policy is', () => {
    // k8s.io/apiserver 1.34, ValidateWebhookService: each segment of a path is a DNS subdomain, and so is a webhook's name.
    const label = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
    const subdomain = new RegExp(`^(?=.{1,253}$)${label}(\\.${label})*$`);
    const name = 'x.'.repeat(200).slice(0, 253 - 'kw.cap.'.length - '.portcullis.dev'.length);
    const service = { namespace: 'portcullis', name: 'policy-server-default', port: 443 };
    for (const mutating of [false, true]) {
      for (const one of [
        match(name.replace(/.$/, 'x'), { mutating }, undefined, true),
        match('p', { mutating }, 'a', true),
      ]) {
        const [configuration] = made([one], { ...SETTINGS, target: { service, ca: 'PEM' } });
        const [webhook] = (configuration?.webhooks ?? []) as readonly Webhook[];
        assert.ok(webhook);
        assert.match(webhook.name, subdomain);
        const [, ...parts] = (webhook.clientConfig as { service: { path: string } }).service.path.split('/');
        assert.equal(parts.length, 2);
        parts.forEach((part) => assert.match(part, subdomain));
      }
    }
  });

  it('exempts groups that are needed to repair a policy for everything, unless the policy names them', () => {
    const wild = { operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*/*'] };
    const conditions = (rules: readonly object[]): readonly string[] =>
      webhooks([match('p', { rules })])[0]?.matchConditions?.map(({ expression }) => expression) ?? [];
    const groups = (expressions: readonly string[]): string => expressions[0] ?? '';
    assert.equal(
      groups(conditions([wild])),
      '!(request.resource.group in ["policies.kubewarden.io", "portcullis.dev", "coordination.k8s.io", "authentication.k8s.io", "authorization.k8s.io"])',
    );
    assert.doesNotMatch(groups(conditions([wild, { ...RULE, apiGroups: ['coordination.k8s.io'] }])), /coordination/);
    const ofOurs = conditions([{ ...RULE, apiGroups: ['policies.kubewarden.io', 'portcullis.dev'] }]);
    assert.equal(groups(ofOurs), '!(request.resource.group in ["portcullis.dev"])');
    assert.match(ofOurs[1] ?? '', /"policies.kubewarden.io" && has\(request.subResource\) && .* == "status"/);
  });

  it('covers both of two revisions of a policy', () => {
    const before = match(
      'p',
      { failurePolicy: 'Ignore', matchConditions: [{ name: 'a', expression: 'true' }] },
      undefined,
      true,
    );
    const after = match('p', { rules: [{ ...RULE, operations: ['DELETE'] }], timeoutSeconds: 3 }, undefined, true);
    const [configuration, ...others] = made([before, after]);
    assert.deepEqual(others, []);
    const coverage = new ConfigurationCoverage(configuration ?? assert.fail());
    assert.ok(coverage.covers(before, SETTINGS) && coverage.covers(after, SETTINGS));
  });

  it('distributes webhooks over several objects when one would be too large', () => {
    const long = 'x'.repeat(2_000);
    const all = Array.from({ length: 1_000 }, (_, index) =>
      match(`p${index}`, { matchConditions: [{ name: 'a', expression: `"${long}" != ""` }] }, undefined, true),
    );
    const parts = made(all);
    assert.ok(parts.length > 3 && parts.length < 6, String(parts.length));
    assert.equal(new Set(parts.map(({ metadata }) => metadata.name)).size, parts.length);
    assert.ok(parts.every(({ webhooks: list = [] }) => bytesOf(list) < MAX_CONFIGURATION_BYTES * 1.01));
    assert.equal(parts.flatMap(({ webhooks: list = [] }) => list).length, all.length);
  });

  it('does not use the name of the configuration for our own kinds', () => {
    assert.notEqual(configurationName('own-kinds'), 'portcullis-own-kinds');
  });

  it('covers all resources and warns when a bucket has too many rules', () => {
    const rule = (index: number): object => ({ ...RULE, apiGroups: [`g${index}`], resources: [`r${index}`] });
    const rules = Array.from({ length: MAX_RULES + 1 }, (_, index) => rule(index));
    const { configurations, warnings } = webhookConfigurations([match('p', { rules })], SETTINGS);
    assert.match(warnings.join(), /1001 rules of [0-9]+ bytes, expected at most 1000/);
    const [webhook] = configurations.flatMap((one) => one.webhooks as readonly Webhook[]);
    assert.deepEqual(webhook?.rules, [{ ...RULE, apiGroups: ['*'], resources: ['*/*'], scope: '*' }]);
    const { matchConditions = [] } = webhook;
    assert.deepEqual(
      matchConditions.map(({ name }) => name),
      ['portcullis.dev/exempt-groups', 'portcullis.dev/exempt-identities'],
    );
    assert.match(matchConditions[0]?.expression ?? '', /"coordination\.k8s\.io"/, 'Leases keep the cluster going');
  });

  it("covers namespaces by each other's rules and warns when there are too many sets of rules", () => {
    const all = Array.from({ length: MAX_NAMESPACE_GROUPS + 5 }, (_, index) =>
      match('p', { rules: [{ ...RULE, resources: [`r${index}`] }] }, `n${index}`),
    );
    const { configurations, warnings } = webhookConfigurations(all, SETTINGS);
    assert.match(warnings.join(), /too many sets of rules/);
    assert.equal(configurations[0]?.webhooks?.length, MAX_NAMESPACE_GROUPS);
    const coverage = new ConfigurationCoverage(configurations[0]);
    assert.ok(all.every((one) => coverage.covers(one, SETTINGS)));
  });

  it('never gives two webhooks one name, whatever rules are merged', () => {
    const resources = (...list: readonly string[]): object => ({ rules: [{ ...RULE, resources: list }] });
    const many = Array.from({ length: MAX_NAMESPACE_GROUPS - 2 }, (_, index) =>
      ['a', 'b', 'c'].map((part) => match('p', resources(`r${index}`), `n${index}${part}`)),
    ).flat();
    const kept = ['k', 'l', 'm'].map((namespace) => match('p', resources('x', 'y'), namespace));
    const merged = [match('p', resources('x'), 'u'), match('p', resources('y'), 'v')];
    const made32 = ['r668', 'r51912'].map((resource, index) =>
      match('q', { ...resources(resource), failurePolicy: 'Ignore' }, `z${index}`),
    );
    const names = namesOf([...many, ...kept, ...merged, ...made32]);
    assert.equal(new Set(names).size, names.length);
  });

  it('limits the number of namespaces in one webhook', () => {
    const all = Array.from({ length: MAX_NAMESPACES + 1 }, (_, index) => match('p', {}, `n${index}`));
    const [first, second, ...others] = webhooks(all);
    assert.deepEqual(others, []);
    assert.equal(second?.name, first?.name.replace('.portcullis', '-1.portcullis'));
  });

  for (const count of [1, 100, 3_500]) {
    it(`makes at most eight objects for ${count} policies of mixed settings`, () => {
      const all = Array.from({ length: count }, (_, index) =>
        match(
          `p${index}`,
          {
            rules: [{ ...RULE, resources: [['pods', 'services', 'configmaps', 'secrets'][index % 4]] }],
            mutating: index % 5 === 0,
            failurePolicy: index % 3 === 0 ? 'Ignore' : 'Fail',
            matchPolicy: index % 7 === 0 ? 'Exact' : 'Equivalent',
            timeoutSeconds: 2 + (index % 28),
          },
          index % 2 === 0 ? undefined : `tenant-${index}`,
          index % 50 === 49,
        ),
      );
      const configurations = made(all);
      assert.ok(configurations.length <= 8, String(configurations.length));
      const coverages = configurations.map((one) => new ConfigurationCoverage(one));
      assert.ok(all.every((one) => coverages.some((coverage) => coverage.covers(one, SETTINGS))));
    });
  }
});

describe('ConfigurationCoverage', () => {
  const coverageOf = (change: Partial<Webhook>, of = match('p')): ConfigurationCoverage => {
    const [configuration] = made([of]);
    assert.ok(configuration);
    const [webhook] = configuration.webhooks as readonly Webhook[];
    return new ConfigurationCoverage({ ...configuration, webhooks: [{ ...webhook, ...change }] });
  };

  it('detects that a webhook was narrowed', () => {
    const plain = match('p', { failurePolicy: 'Fail' });
    assert.ok(coverageOf({}).covers(plain, SETTINGS));
    for (const change of [
      { failurePolicy: 'Ignore' },
      { matchPolicy: 'Exact' },
      { rules: [] },
      { rules: [{ ...RULE, operations: ['DELETE'], scope: '*' }] },
      { timeoutSeconds: 1 },
      { objectSelector: { matchLabels: { only: 'these' } } },
      { namespaceSelector: { matchExpressions: [NOT_IN(['kube-system', 'shop'])] } },
      { matchConditions: [{ name: 'never', expression: 'false' }] },
      { clientConfig: { url: 'https://elsewhere/' } },
    ] as const) {
      assert.ok(!coverageOf(change as Partial<Webhook>).covers(plain, SETTINGS), JSON.stringify(change));
    }
  });

  it('covers a namespaced policy in its own namespace only', () => {
    const of = match('p', {}, 'shop');
    assert.ok(coverageOf({}, of).covers(of, SETTINGS));
    assert.ok(!coverageOf({}, of).covers(match('p', {}, 'bank'), SETTINGS));
  });

  it("finds policies' own webhooks", () => {
    const of = match('p', {}, 'shop', true);
    assert.ok(
      coverageOf({}, of).hasOwnWebhook(
        policyId({ kind: 'AdmissionPolicy', metadata: { name: 'p', namespace: 'shop' } }),
      ),
    );
    assert.ok(!coverageOf({}).hasOwnWebhook('kw.cap.p'));
  });
});
