// Answers to reviews over HTTPS, for all kinds of policies, with the texts of Kubewarden's policy server.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { valueAt } from '../../src/values/index.ts';
import { parseYaml } from '../../src/values/yaml/index.ts';
import {
  example,
  exampleReview,
  guest,
  requiredLabel,
  requires,
  review,
  type ReviewResponse,
  scripted,
  startServer,
  type TestServer,
} from './harness.ts';

const TIMEOUT_MESSAGE = 'Policy execution interrupted because it exceeded the allowed execution time';

const hostNamespaces = {
  module: example('host-namespaces'),
  settings: { allowHostNetwork: false, allowHostPID: false, allowHostIPC: false },
};
const containerLimits = { module: example('container-limits'), settings: { memory: '512Mi', cpu: '2' } };
const imageRegistries = {
  module: example('image-registries'),
  timeoutEvalSeconds: 10,
  settings: { allowed: ['example.com/shop/', 'example.com/base/'] },
};
const seccomp = { module: example('default-seccomp'), settings: { profile: 'RuntimeDefault' } };
const [podProfile] = parseYaml(
  readFileSync(new URL('../../examples/pod-profile/policy.yaml', import.meta.url), 'utf8'),
).map((manifest) => valueAt(manifest, 'spec', 'settings'));
const group = (rest: object): object => ({
  message: 'the group says no',
  policies: {
    labelled: requires('team'),
    unprivileged: { module: example('pod-privileged') },
  },
  ...rest,
});

const policies = {
  'required-labels': requires('app.kubernetes.io/name'),
  'pod-privileged': { module: example('pod-privileged') },
  'image-registries': imageRegistries,
  'host-namespaces': hostNamespaces,
  'container-limits': containerLimits,
  'default-seccomp': { ...seccomp, allowedToMutate: true },
  'seccomp-not-allowed-to-mutate': seccomp,
  'seccomp-monitored': { ...seccomp, allowedToMutate: true, policyMode: 'monitor' },
  'labels-monitored': requires('app', { policyMode: 'monitor' }),
  'labels-with-message': requires('app', { message: 'ask the platform team' }),
  'pod-profile': { module: 'builtin:pod-profile', allowedToMutate: true, settings: podProfile },
  'pod-profile-not-allowed-to-mutate': { module: 'builtin:pod-profile', settings: podProfile },
  'group-of-all': group({ expression: 'labelled() && unprivileged()' }),
  'group-of-any': group({ expression: 'unprivileged() || labelled()' }),
  'group-monitored': group({ expression: 'labelled()', policyMode: 'monitor' }),
  'group-that-mutates': {
    expression: 'mutates()',
    message: 'members may not mutate',
    policies: { mutates: seccomp },
  },
  'group-with-failing-member': {
    expression: 'bad()',
    message: 'no result',
    policies: { bad: { module: guest('trap') } },
  },
  'scripted-answer': { module: guest('scripted-answer') },
  // Returns the host's answer as the mutated object.
  'always-mutates': {
    module: guest('wasi-host-call'),
    allowedToMutate: true,
    hostCapabilities: ['net/v1/dns_lookup_host'],
  },
  trap: { module: guest('trap') },
  'trap-monitored': { module: guest('trap'), policyMode: 'monitor' },
  loop: { module: guest('loop-in-validate'), timeoutEvalSeconds: 1 },
  'loop-ignored': { module: guest('loop-in-validate'), timeoutEvalSeconds: 1, failurePolicy: 'Ignore' },
  'never-good': { module: 'file:///nonexistent/policy.wasm' },
  'never-good-monitored': { module: 'file:///nonexistent/policy.wasm', policyMode: 'monitor' },
  'never-good-ignored': { module: 'file:///nonexistent/policy.wasm', failurePolicy: 'Ignore' },
  'too-long': {
    module: 'builtin:cel',
    settings: { validations: [{ expression: `${'1 == 1 && '.repeat(14_000)}true` }] },
  },
  'name with spaces & ümlaut': requires('app'),
};

const patchOf = (response: ReviewResponse): unknown =>
  JSON.parse(Buffer.from(response.patch ?? '', 'base64').toString());

describe('answers over HTTPS', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer({ policies, policyTimeoutSeconds: 10, alwaysAcceptNamespace: 'kube-system' });
  });
  after(() => server[Symbol.asyncDispose]());

  for (const [kind, id] of [
    ['waPC, AssemblyScript', 'required-labels'],
    ['waPC, Rust', 'pod-privileged'],
    ['WASI, Go', 'image-registries'],
    ['Rego, OPA', 'host-namespaces'],
    ['Rego, Gatekeeper', 'container-limits'],
  ] as const) {
    it(`${kind}: ${id} admits and rejects`, async () => {
      const admitted = exampleReview(id, 'admitted');
      const rejected = exampleReview(id, 'rejected');
      assert.deepEqual(await server.review(id, admitted), {
        uid: admitted.request.uid,
        allowed: true,
        auditAnnotations: null,
        warnings: null,
      });
      const { uid, allowed, status } = await server.review(id, rejected);
      assert.deepEqual([uid, allowed], [rejected.request.uid, false]);
      assert.ok((status?.message ?? '').length > 10, JSON.stringify(status));
    });
  }

  it('builtin: pod-profile adds defaults if it may mutate, and rejects', async () => {
    const mutated = await server.review('pod-profile', exampleReview('pod-profile', 'mutated'));
    assert.equal(mutated.allowed, true);
    const paths = (patchOf(mutated) as { path: string }[]).map(({ path }) => path);
    assert.deepEqual(paths, ['/spec/containers/0/securityContext', '/spec/securityContext']);
    const rejected = await server.review('pod-profile', exampleReview('pod-profile', 'rejected'));
    assert.deepEqual([rejected.allowed, rejected.status?.code], [false, 403]);
    assert.match(rejected.status?.message ?? '', /^violates the pod profile: spec\.hostNetwork: /);
    const unchanged = await server.review('pod-profile-not-allowed-to-mutate', exampleReview('pod-profile', 'mutated'));
    assert.match(unchanged.status?.message ?? '', /not allow mutations/);
  });

  it('is an AdmissionReview in JSON', async () => {
    const { status, headers, json } = await server.post('/validate/required-labels', JSON.stringify(review()));
    assert.equal(status, 200);
    assert.equal(headers['content-type'], 'application/json');
    const { apiVersion, kind } = json as Record<string, unknown>;
    assert.deepEqual([apiVersion, kind], ['admission.k8s.io/v1', 'AdmissionReview']);
  });

  it('finds a policy with a percent-encoded id', async () => {
    const response = await server.review(encodeURIComponent('name with spaces & ümlaut'), review());
    assert.equal(requiredLabel(response), 'app');
  });

  it('contains a patch exactly when a policy that may mutate changes the object', async () => {
    const mutated = await server.review('default-seccomp', exampleReview('default-seccomp', 'mutated'));
    assert.equal(mutated.allowed, true);
    assert.equal(mutated.patchType, 'JSONPatch');
    const patch = patchOf(mutated) as { op: string; path: string; value: unknown }[];
    assert.ok(JSON.stringify(patch).includes('RuntimeDefault'), JSON.stringify(patch));
    const admitted = await server.review('default-seccomp', exampleReview('default-seccomp', 'admitted'));
    assert.equal(admitted.allowed, true);
    assert.ok(!('patch' in admitted) && !('patchType' in admitted));
  });

  it('rejects a mutation that is not allowed', async () => {
    const response = await server.review('seccomp-not-allowed-to-mutate', exampleReview('default-seccomp', 'mutated'));
    assert.equal(response.allowed, false);
    assert.equal(
      response.status?.message,
      'Request rejected by policy seccomp-not-allowed-to-mutate. The policy attempted to mutate the request, but it is currently configured to not allow mutations.',
    );
    assert.ok(!('patch' in response));
  });

  it('rejects the mutation of a missing object', async () => {
    const deletion = review({ operation: 'DELETE', object: null, oldObject: review().request.object });
    const { allowed, status } = await server.review('always-mutates', deletion);
    assert.equal(allowed, false);
    assert.equal(
      status?.message,
      'Incoming object is null, which happens only with DELETE operations, but the policy is attempting a mutation. This is not allowed',
    );
    assert.equal((await server.review('always-mutates', review())).patchType, 'JSONPatch');
  });

  it('has the message of the definition, and the policy’s own message as a cause', async () => {
    const { status } = await server.review('labels-with-message', review());
    assert.equal(status?.message, 'ask the platform team');
    assert.equal(status?.details?.causes.length, 1);
    assert.match(status?.details?.causes[0]?.message ?? '', /has no label "app"/);
  });

  it('admits everything in monitor mode, without patch and status', async () => {
    for (const [id, request] of [
      ['labels-monitored', review()],
      ['seccomp-monitored', exampleReview('default-seccomp', 'mutated')],
      ['trap-monitored', review()],
      ['group-monitored', review()],
    ] as const) {
      const { uid: _uid, ...rest } = await server.review(id, request);
      assert.deepEqual(rest, { allowed: true, auditAnnotations: null, warnings: null }, id);
    }
    const { request } = review();
    const line = server.log.find(
      ({ msg, policy }) => msg === 'policy evaluation (monitor mode)' && policy === 'labels-monitored',
    );
    assert.ok(line, 'what monitor mode would have rejected is logged');
    assert.deepEqual(
      [line['allowed'], line['operation'], line['kind'], line['namespace'], line['name'], line['user']],
      [false, 'CREATE', 'Pod', request['namespace'], request['name'], 'alice'],
    );
    assert.match(String(line['message']), /has no label "app"/);
  });

  it('gives /audit the policy’s own verdict', async () => {
    const options = { route: 'audit' };
    assert.equal((await server.review('labels-monitored', review(), options)).allowed, false);
    assert.match((await server.review('labels-with-message', review(), options)).status?.message ?? '', /has no label/);
    const mutated = exampleReview('default-seccomp', 'mutated');
    const response = await server.review('seccomp-not-allowed-to-mutate', mutated, options);
    assert.deepEqual([response.allowed, response.patchType], [true, 'JSONPatch']);
  });

  it('is a bare response for raw requests', async () => {
    const script = { uid: 'raw-1', answer: JSON.stringify({ accepted: false, message: 'raw no', code: 418 }) };
    const { json } = await server.post('/validate_raw/scripted-answer', JSON.stringify({ request: script }));
    assert.deepEqual(json, {
      response: {
        uid: 'raw-1',
        allowed: false,
        status: { message: 'raw no', code: 418 },
        auditAnnotations: null,
        warnings: null,
      },
    });
  });

  it('passes on code, warnings and audit annotations', async () => {
    const answer = { accepted: false, message: 'm', code: 409, warnings: ['w'], audit_annotations: { a: 'b' } };
    const { status, warnings, auditAnnotations } = await server.review(
      'scripted-answer',
      scripted({ answer: JSON.stringify(answer) }),
    );
    assert.deepEqual(
      { status, warnings, auditAnnotations },
      {
        status: { message: 'm', code: 409 },
        warnings: ['w'],
        auditAnnotations: { a: 'b' },
      },
    );
  });

  it('cuts long texts of a policy, and says so', async () => {
    const long = 'long '.repeat(100_000);
    const answer = { accepted: false, message: long, warnings: [long, 'short'], audit_annotations: { a: long } };
    const { status, warnings, auditAnnotations } = await server.review(
      'scripted-answer',
      scripted({ answer: JSON.stringify(answer) }),
    );
    const cut = `${long.slice(0, 8_191)}…`;
    assert.equal(status?.message, cut);
    assert.deepEqual(warnings, [cut, 'short']);
    assert.deepEqual(auditAnnotations, { a: cut });
  });

  it('leaves out texts beyond the limit of an answer, and says how many', async () => {
    const warnings = Array.from({ length: 20 }, (_, index) => `${index} ${'long '.repeat(1_600)}`);
    const answer = { accepted: false, message: 'm', warnings, audit_annotations: { a: 'b' } };
    const response = await server.review('scripted-answer', scripted({ answer: JSON.stringify(answer) }));
    assert.ok(JSON.stringify(response).length < 140_000);
    assert.equal(response.status?.message, 'm');
    assert.deepEqual(response.warnings?.slice(0, 2), warnings.slice(0, 2));
    const [left = '', annotations] = response.warnings?.slice(-2) ?? [];
    assert.equal(left, `… and ${20 - ((response.warnings?.length ?? 0) - 2)} more warnings`);
    assert.equal(annotations, '… 1 audit annotations are missing: they are too long');
  });

  it('fails a policy whose mutated object no API server would take, with the figure', async () => {
    const answer = { accepted: true, mutated_object: { data: 'x'.repeat(3 * 1024 * 1024) } };
    const { allowed, patch, status } = await server.review(
      'scripted-answer',
      scripted({ answer: JSON.stringify(answer) }),
    );
    assert.deepEqual([allowed, patch, status?.code], [false, undefined, 500]);
    assert.match(
      status?.message ?? '',
      /the mutated object of the policy is too large: expected at most 3145728 characters, got 3145739$/,
    );
  });

  it('rejects with the message of a group and a cause for each member that was evaluated and denied', async () => {
    const rejected = exampleReview('pod-privileged', 'rejected');
    const all = await server.review('group-of-all', rejected);
    assert.equal(all.allowed, false);
    assert.equal(all.status?.message, 'the group says no');
    const fields = (response: ReviewResponse): unknown => response.status?.details?.causes.map(({ field }) => field);
    // The first member denied, so the second was not evaluated.
    assert.deepEqual(fields(all), ['spec.policies.labelled']);
    assert.deepEqual(fields(await server.review('group-of-any', rejected)), [
      'spec.policies.unprivileged',
      'spec.policies.labelled',
    ]);
    assert.equal((await server.review('group-of-any', exampleReview('pod-privileged', 'admitted'))).allowed, true);
  });

  it('rejects mutations by members of a group', async () => {
    const { allowed, status } = await server.review('group-that-mutates', exampleReview('default-seccomp', 'mutated'));
    assert.equal(allowed, false);
    assert.deepEqual(status?.details?.causes, [
      { field: 'spec.policies.mutates', message: 'mutation is not allowed inside of policy group' },
    ]);
  });

  it('has code 500 for a group without a result', async () => {
    const { allowed, status } = await server.review('group-with-failing-member', review());
    assert.deepEqual([allowed, status?.code], [false, 500]);
  });

  it('has status 404 for an unknown policy, a member of a group, and an unknown path', async () => {
    const body = JSON.stringify(review());
    assert.deepEqual((await server.post('/validate/unknown', body)).json, {
      message: 'unknown policy: unknown',
      status: 404,
    });
    assert.equal((await server.post('/audit/unknown', body)).status, 404);
    assert.equal((await server.post('/validate_raw/unknown', body)).status, 404);
    assert.equal((await server.post('/validate/group-of-all/labelled', body)).status, 404);
    assert.equal((await server.post('/validate/', body)).status, 404);
    assert.equal((await server.post('/validate', body)).status, 404);
    assert.equal((await server.post('/', body)).status, 404);
    assert.equal((await server.post('/policies', body)).status, 404);
  });

  it('has code 500 for a guest that traps, even with failurePolicy Ignore', async () => {
    const { allowed, status } = await server.review('trap', review());
    assert.deepEqual([allowed, status?.code], [false, 500]);
    assert.match(status?.message ?? '', /^internal server error: /);
  });

  it('names the timeout of a guest', async () => {
    const { allowed, status } = await server.review('loop', review());
    assert.equal(allowed, false);
    assert.deepEqual(status, { message: TIMEOUT_MESSAGE, code: 500 });
    const ignored = await server.review('loop-ignored', review());
    assert.equal(ignored.allowed, true);
    assert.match(ignored.warnings?.[0] ?? '', /loop-ignored gave no verdict/);
  });

  it('rejects for a policy without a good version, also in monitor mode', async () => {
    for (const id of ['never-good', 'never-good-monitored']) {
      const { allowed, status } = await server.review(id, review());
      assert.deepEqual([allowed, status?.code], [false, 500], id);
      assert.match(status?.message ?? '', /nonexistent/);
      const { phase, reason, serving } = await server.status(id);
      assert.deepEqual({ phase, reason, serving }, { phase: 'Error', reason: 'FetchFailed', serving: null });
    }
  });

  it('rejects for a policy whose expressions are too long, with the figure', async () => {
    const { allowed, status } = await server.review('too-long', review());
    assert.equal(allowed, false);
    assert.match(
      status?.message ?? '',
      /validations: Too long: expected at most 131072 characters in all expressions of a policy, got 140004/,
    );
  });

  it('admits with a warning for such a policy with failurePolicy Ignore', async () => {
    const { allowed, warnings } = await server.review('never-good-ignored', review());
    assert.equal(allowed, true);
    assert.match(warnings?.[0] ?? '', /never-good-ignored/);
  });

  it('admits requests in the always-accept namespace, if the policy is known', async () => {
    for (const id of ['required-labels', 'trap', 'never-good']) {
      assert.equal((await server.review(id, review({ namespace: 'kube-system' }))).allowed, true, id);
    }
    assert.equal(
      (await server.post('/validate/unknown', JSON.stringify(review({ namespace: 'kube-system' })))).status,
      404,
    );
    const counted = await server.metric('kubewarden_policy_evaluations_total', {
      policy_name: 'trap',
      resource_namespace: 'kube-system',
      accepted: 'true',
    });
    assert.equal(counted, 1);
  });
});
