import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:https';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { ApiError } from '../../../cluster/index.ts';
import type { KubernetesObject } from '../../../resources/index.ts';
import type { ResourceDefinition } from '../../resource-definition.ts';
import { RbacAuthorizer } from '../authorization/rbac-authorizer.ts';
import type { AdmissionAttributes } from '../request/request.ts';
import { ListedState } from '../testing/listed-state.ts';
import { selfSigned } from '../testing/self-signed.ts';
import { WebhookRecorder } from '../testing/webhook-recorder.ts';
import type { Behaviour } from '../testing/webhook-recorder.ts';
import { WebhookAdmission } from './webhook-admission.ts';
import { MAX_RESPONSE_BYTES } from './webhook-client.ts';

function definition(
  group: string,
  version: string,
  kind: string,
  resource: string,
  namespaced = true,
): ResourceDefinition {
  return {
    group,
    version,
    kind,
    resource,
    namespaced,
    singular: kind.toLowerCase(),
    shortNames: [],
    categories: [],
    schema: () => ({}),
    hasStatus: true,
    printer: { columns: [], cells: () => [] },
    origin: 'custom',
  };
}

const WIDGETS = definition('example.com', 'v1', 'Widget', 'widgets');
const OLD_WIDGETS = definition('example.com', 'v1beta1', 'Widget', 'widgets');
const NAMESPACES = definition('', 'v1', 'Namespace', 'namespaces', false);
const CONFIGURATIONS = definition(
  'admissionregistration.k8s.io',
  'v1',
  'ValidatingWebhookConfiguration',
  'validatingwebhookconfigurations',
  false,
);

const widget = (labels: Record<string, string> = {}, rest: object = {}): KubernetesObject => ({
  apiVersion: 'example.com/v1',
  kind: 'Widget',
  metadata: { name: 'w', namespace: 'shop', labels },
  ...rest,
});

const add = (path: string, value: unknown): Readonly<Record<string, unknown>> => ({
  allowed: true,
  patchType: 'JSONPatch',
  patch: Buffer.from(JSON.stringify([{ op: 'add', path, value }])).toString('base64'),
});

const RULE = { operations: ['*'], apiGroups: ['example.com'], apiVersions: ['v1'], resources: ['widgets'] };

/** Increases `count` by one, up to 3. */
const counting: Behaviour = ({ request }) => {
  const { count = 0 } = request.object as { count?: number };
  return { response: count < 3 ? add('/count', count + 1) : { allowed: true } };
};

const BEHAVIOURS: Readonly<Record<string, Behaviour>> = {
  deny: () => ({ response: { allowed: false, status: { message: 'no', code: 403, reason: 'Forbidden' } } }),
  warn: () => ({ response: { allowed: true, warnings: ['w'] } }),
  first: () => ({ response: add('/first', 1) }),
  moves: () => ({ response: add('/metadata/namespace', 'other') }),
  becomes: () => ({ response: add('/kind', 'Gadget') }),
  second: () => ({ response: add('/second', 2) }),
  same: ({ request }) => ({ response: add('/kind', (request.object as KubernetesObject).kind) }),
  counting,
  huge: () => ({ body: ' '.repeat(MAX_RESPONSE_BYTES + 1) }),
  redirect: () => ({ status: 307, headers: { location: 'https://127.0.0.1:1/' }, body: '' }),
  silent: () => ({ isSilent: true }),
};

describe('webhook admission', () => {
  let recorder: WebhookRecorder;
  let state: ListedState;
  let admission: WebhookAdmission;
  let ignored: string[];

  before(async () => {
    recorder = await WebhookRecorder.start(BEHAVIOURS, ['hook.shop.svc']);
  });
  after(() => recorder[Symbol.asyncDispose]());
  beforeEach(() => {
    recorder.recorded.length = 0;
    ignored = [];
    state = new ListedState([
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop', labels: { team: 'a' } } },
    ]);
    admission = new WebhookAdmission({
      state,
      authorizer: new RbacAuthorizer(state),
      definitions: () => [WIDGETS, OLD_WIDGETS, NAMESPACES],
      onIgnoredFailure: (webhook) => ignored.push(webhook),
    });
  });
  afterEach(() => admission.close());

  function configure(kind: 'validating' | 'mutating', path: string, rest: object = {}, name = path): void {
    state.put({
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: kind === 'validating' ? 'ValidatingWebhookConfiguration' : 'MutatingWebhookConfiguration',
      metadata: { name },
      webhooks: [
        {
          name: `${name}.example.com`,
          admissionReviewVersions: ['v1'],
          sideEffects: 'None',
          rules: [RULE],
          clientConfig: {
            url: recorder.url(path),
            caBundle: Buffer.from(recorder.certificate.cert).toString('base64'),
          },
          ...rest,
        },
      ],
    });
  }

  function request(object: KubernetesObject | null, rest: Partial<AdmissionAttributes> = {}): AdmissionAttributes {
    return {
      user: { username: 'jane', groups: ['devs'] },
      operation: 'CREATE',
      definition: WIDGETS,
      subresource: undefined,
      namespace: 'shop',
      name: 'w',
      object,
      oldObject: null,
      dryRun: false,
      options: { kind: 'CreateOptions', apiVersion: 'meta.k8s.io/v1' },
      ...rest,
    };
  }

  const nothing = (): void => undefined;
  const validate = (one: AdmissionAttributes): Promise<void> => admission.validate(one, nothing);
  const sent = (index = 0): Readonly<Record<string, unknown>> =>
    recorder.recorded[index]?.review.request ?? assert.fail(`review ${index} was not sent`);
  const paths = (): string[] => recorder.recorded.map(({ path }) => path);

  async function refusal(work: Promise<unknown>): Promise<ApiError> {
    try {
      await work;
    } catch (error) {
      assert.ok(error instanceof ApiError, String(error));
      return error;
    }
    return assert.fail('expected a refusal');
  }

  it('calls no webhook and returns the same object without configurations', async () => {
    const object = widget();
    assert.equal(await admission.mutate(request(object), nothing), object);
    await validate(request(object));
    assert.deepEqual(paths(), []);
  });

  it('refuses a request that a webhook denies, with its status', async () => {
    configure('validating', 'deny');
    const error = await refusal(validate(request(widget())));
    assert.equal(error.message, 'admission webhook "deny.example.com" denied the request: no');
    assert.equal(error.code, 403);
    assert.equal(error.reason, 'Forbidden');
  });

  it('sends a whole review', async () => {
    configure('validating', 'allow');
    const object = widget({ a: 'b' });
    await validate(request(object, { user: { username: 'jane', uid: 'u', groups: ['devs'], extra: { k: ['v'] } } }));
    const [{ review, query } = assert.fail('no review')] = recorder.recorded;
    const { uid, ...rest } = review.request;
    assert.match(String(uid), /^[0-9a-f-]{36}$/u);
    assert.equal(query, '?timeout=10s');
    assert.deepEqual(rest, {
      kind: { group: 'example.com', version: 'v1', kind: 'Widget' },
      resource: { group: 'example.com', version: 'v1', resource: 'widgets' },
      requestKind: { group: 'example.com', version: 'v1', kind: 'Widget' },
      requestResource: { group: 'example.com', version: 'v1', resource: 'widgets' },
      name: 'w',
      namespace: 'shop',
      operation: 'CREATE',
      userInfo: { username: 'jane', uid: 'u', groups: ['devs'], extra: { k: ['v'] } },
      object,
      oldObject: null,
      dryRun: false,
      options: { kind: 'CreateOptions', apiVersion: 'meta.k8s.io/v1' },
    });
  });

  it('applies patches in the order of names, each seeing the last, and leaves the given object alone', async () => {
    configure('mutating', 'second', {}, 'b');
    configure('mutating', 'first', {}, 'a');
    const object = widget();
    const result = await admission.mutate(request(object), nothing);
    assert.deepEqual(result, widget({}, { first: 1, second: 2 }));
    assert.deepEqual(object, widget());
    assert.deepEqual(paths(), ['/first', '/second']);
    assert.equal((sent(1).object as KubernetesObject).first, 1);
  });

  it('keeps objects in their namespace, and of their kind', async () => {
    configure('mutating', 'moves');
    const error = await refusal(admission.mutate(request(widget()), nothing));
    assert.equal(
      error.message,
      'the namespace of the provided object does not match the namespace sent on the request',
    );
    configure('mutating', 'becomes', {}, 'moves');
    assert.equal((await refusal(admission.mutate(request(widget()), nothing))).code, 500);
  });

  it('returns the same object when a patch changes nothing', async () => {
    configure('mutating', 'same');
    const object = widget();
    assert.equal(await admission.mutate(request(object), nothing), object);
  });

  it('reinvokes webhooks with reinvocationPolicy IfNeeded when another changed the object after them', async () => {
    configure('mutating', 'counting', { reinvocationPolicy: 'IfNeeded' }, 'a');
    configure('mutating', 'counting', {}, 'b');
    configure('mutating', 'same', { reinvocationPolicy: 'IfNeeded' }, 'c');
    const result = await admission.mutate(request(widget()), nothing);
    assert.equal(result?.count, 3);
    assert.deepEqual(paths(), ['/counting', '/counting', '/same', '/counting', '/same']);
  });

  it('converts to the version of the rules, and back', async () => {
    configure('mutating', 'first', { rules: [{ ...RULE, apiVersions: ['v1beta1'] }] });
    const result = await admission.mutate(request(widget()), nothing);
    assert.deepEqual(result, widget({}, { first: 1 }));
    assert.deepEqual(sent().kind, { group: 'example.com', version: 'v1beta1', kind: 'Widget' });
    assert.deepEqual(sent().requestKind, { group: 'example.com', version: 'v1', kind: 'Widget' });
    assert.equal((sent().object as KubernetesObject).apiVersion, 'example.com/v1beta1');
  });

  it('matches only the requested version with matchPolicy Exact', async () => {
    configure('validating', 'deny', { rules: [{ ...RULE, apiVersions: ['v1beta1'] }], matchPolicy: 'Exact' });
    await validate(request(widget()));
  });

  it('calls no webhooks for webhook configurations', async () => {
    const rules = [{ operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*'] }];
    configure('validating', 'deny', { rules });
    const object = {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingWebhookConfiguration',
      metadata: { name: 'x' },
    };
    await validate(request(object, { definition: CONFIGURATIONS, namespace: undefined }));
  });

  it('selects by rules', async () => {
    const cases: readonly (readonly [rule: object, request: Partial<AdmissionAttributes>, isCalled: boolean])[] = [
      [{ operations: ['UPDATE'] }, {}, false],
      [{ operations: ['DELETE', 'CREATE'] }, {}, true],
      [{ apiGroups: ['*'], resources: ['*'] }, {}, true],
      [{ resources: ['widgets/status'] }, {}, false],
      [{ resources: ['widgets'] }, { subresource: 'status' }, false],
      [{ resources: ['widgets/*'] }, { subresource: 'status' }, true],
      [{ resources: ['widgets/*'] }, {}, true],
      [{ resources: ['*/status'] }, { subresource: 'status' }, true],
      [{ resources: ['*'] }, { subresource: 'status' }, false],
      [{ resources: ['*/*'] }, { subresource: 'scale' }, true],
      [{ scope: 'Cluster' }, {}, false],
      [{ scope: 'Namespaced' }, {}, true],
      [
        { scope: 'Cluster', apiGroups: [''], resources: ['namespaces'] },
        { definition: NAMESPACES, namespace: undefined, name: 'shop' },
        true,
      ],
      [
        { scope: 'Namespaced', apiGroups: [''], resources: ['namespaces'] },
        { definition: NAMESPACES, namespace: undefined, name: 'shop' },
        false,
      ],
    ];
    for (const [rule, asked, isCalled] of cases) {
      recorder.recorded.length = 0;
      configure('validating', 'allow', { rules: [{ ...RULE, ...rule }] });
      await validate(request(widget(), asked));
      assert.equal(recorder.recorded.length, isCalled ? 1 : 0, JSON.stringify([rule, asked.subresource]));
    }
  });

  it('selects by labels of the namespace, and of the object, old or new', async () => {
    const select = (labels: object): object => ({ matchLabels: labels });
    const cases: readonly (readonly [webhook: object, request: AdmissionAttributes, isCalled: boolean])[] = [
      [{ namespaceSelector: select({ team: 'a' }) }, request(widget()), true],
      [{ namespaceSelector: select({ team: 'b' }) }, request(widget()), false],
      [{ objectSelector: select({ x: '1' }) }, request(widget({ x: '1' })), true],
      [{ objectSelector: select({ x: '1' }) }, request(widget()), false],
      [
        { objectSelector: select({ x: '1' }) },
        request(widget(), { oldObject: widget({ x: '1' }), operation: 'UPDATE' }),
        true,
      ],
      [
        { objectSelector: select({ x: '1' }) },
        request(null, { oldObject: widget({ x: '1' }), operation: 'DELETE' }),
        true,
      ],
    ];
    for (const [webhook, asked, isCalled] of cases) {
      recorder.recorded.length = 0;
      configure('validating', 'allow', webhook);
      await validate(asked);
      assert.equal(recorder.recorded.length, isCalled ? 1 : 0, JSON.stringify(webhook));
    }
  });

  it('takes the labels of a namespace that is written from the request', async () => {
    const rules = [{ operations: ['*'], apiGroups: [''], apiVersions: ['v1'], resources: ['namespaces'] }];
    configure('validating', 'deny', { rules, namespaceSelector: { matchLabels: { team: 'new' } } });
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop', labels: { team: 'new' } } };
    const asked = request(namespace, { definition: NAMESPACES, namespace: undefined, name: 'shop' });
    assert.equal((await refusal(validate(asked))).code, 403);
    assert.equal(sent().namespace, 'shop');
  });

  it('refuses objects of missing namespaces when a webhook selects by labels', async () => {
    configure('validating', 'deny', { namespaceSelector: { matchLabels: { team: 'a' } } });
    const error = await refusal(validate(request(widget(), { namespace: 'none' })));
    assert.equal(error.message, 'namespaces "none" not found');
  });

  it('uses a configuration from its creation to its deletion', async () => {
    await validate(request(widget()));
    configure('validating', 'deny');
    await refusal(validate(request(widget())));
    const [configuration] = state.list({ group: CONFIGURATIONS.group, resource: CONFIGURATIONS.resource });
    state.remove(configuration ?? assert.fail('no configuration'));
    await validate(request(widget()));
  });

  it('admits when failures are ignored, and reports them', async () => {
    configure('validating', 'redirect', { failurePolicy: 'Ignore' });
    await validate(request(widget()));
    assert.deepEqual(ignored, ['redirect.example.com']);
  });

  it('follows no redirects, and reads no endless answers', async () => {
    configure('validating', 'redirect');
    assert.match((await refusal(validate(request(widget())))).message, /status code 307/u);
    configure('validating', 'huge', {}, 'redirect');
    assert.match((await refusal(validate(request(widget())))).message, /too large: expected at most 5242880 bytes/u);
    assert.deepEqual(paths(), ['/redirect', '/huge']);
  });

  it('calls no webhook with side effects in dry runs', async () => {
    configure('validating', 'allow', { sideEffects: 'Some' });
    const error = await refusal(validate(request(widget(), { dryRun: true })));
    assert.equal(error.message, 'admission webhook "allow.example.com" does not support dry run');
    assert.deepEqual(paths(), []);
  });

  it('ends when the request does', async () => {
    configure('validating', 'silent');
    const controller = new AbortController();
    const work = admission.validate(request(widget()), nothing, controller.signal);
    const reason = new Error('gone');
    while (recorder.recorded.length === 0) {
      await new Promise(setImmediate);
    }
    controller.abort(reason);
    await assert.rejects(work, reason);
  });

  it('passes warnings on, each once', async () => {
    configure('validating', 'warn', {}, 'a');
    configure('validating', 'warn', {}, 'b');
    const warnings: string[] = [];
    await admission.validate(request(widget()), (text) => warnings.push(text));
    assert.deepEqual(warnings, ['w']);
  });

  it('keeps connections', async () => {
    let connections = 0;
    const server = createServer(recorder.certificate, (incoming, outgoing) => {
      void incoming.toArray().then((chunks) => {
        const { request: asked } = JSON.parse(Buffer.concat(chunks).toString()) as { request: { uid: string } };
        const response = { uid: asked.uid, allowed: true };
        outgoing.end(JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response }));
      });
    });
    server.on('secureConnection', () => (connections += 1));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    const caBundle = Buffer.from(recorder.certificate.cert).toString('base64');
    const url = `https://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/x`;
    configure('validating', 'kept', { clientConfig: { url, caBundle } });
    for (let index = 0; index < 5; index += 1) {
      await validate(request(widget()));
    }
    assert.equal(connections, 1);
    server.close();
    server.closeAllConnections();
  });

  it('finds services by the given resolver, and verifies their names', async () => {
    const caBundle = Buffer.from(recorder.certificate.cert).toString('base64');
    const resolving = new WebhookAdmission({
      state,
      authorizer: new RbacAuthorizer(state),
      definitions: () => [WIDGETS],
      resolveService: () => ({ host: '127.0.0.1', port: recorder.port }),
    });
    configure('validating', 'deny', {
      clientConfig: { service: { namespace: 'shop', name: 'hook', path: '/deny' }, caBundle },
    });
    assert.equal((await refusal(resolving.validate(request(widget()), nothing))).code, 403);
    configure('validating', 'deny', {
      clientConfig: { service: { namespace: 'shop', name: 'other', path: '/deny' }, caBundle },
    });
    const error = await refusal(resolving.validate(request(widget()), nothing));
    assert.match(error.message, /certificate is valid for localhost, hook.shop.svc, not other.shop.svc$/u);
    resolving.close();
  });

  it('says that a certificate has expired', async () => {
    const expired = await selfSigned([], -1000);
    const server = createServer(expired, () => undefined);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    const url = `https://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/x`;
    configure('validating', 'old', { clientConfig: { url, caBundle: Buffer.from(expired.cert).toString('base64') } });
    const error = await refusal(validate(request(widget())));
    assert.match(error.message, /x509: certificate has expired or is not yet valid$/u);
    server.close();
  });

  it('rejects a request when a match condition fails, and skips the webhook when it is false', async () => {
    const conditions = (expression: string): object => ({ matchConditions: [{ name: 'c', expression }] });
    configure('validating', 'deny', conditions('object.spec.x == 1'));
    const error = await refusal(validate(request(widget())));
    assert.equal(
      error.message,
      `widgets.example.com "w" is forbidden: expression 'object.spec.x == 1' resulted in error: no such key: spec`,
    );
    configure('validating', 'deny', conditions('request.operation == "DELETE"'));
    await validate(request(widget()));
    configure('validating', 'deny', conditions('no such expression'));
    assert.match((await refusal(validate(request(widget())))).message, /compilation error/u);
    assert.deepEqual(paths(), []);
  });
});
