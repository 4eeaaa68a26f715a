import assert from 'node:assert/strict';
import { describe, it, test } from 'node:test';
import fc from 'fast-check';
import type { CallContext } from '../../wasm/index.ts';
import { createBuiltinGuest } from './builtin-guest.ts';
import { CelGuest } from './cel-guest.ts';
import { EngineError } from '../values/errors.ts';
import { NO_CLUSTER_MESSAGE } from '../capabilities/kubernetes.ts';
import type { JsonObject, JsonValue } from '../values/json-text.ts';
import { podReview } from '../testing/reviews.ts';
import type { GuestVerdict } from '../verdict/guest-verdict.ts';

/** Answers host calls by `operation`; other calls fail as without a cluster. */
function contextWith(answers: Readonly<Record<string, (payload: JsonObject) => JsonValue>> = {}): CallContext {
  return {
    limits: { fuel: Infinity, answerBytes: Infinity },
    log: () => undefined,
    hostCall: (binding, namespace, operation, payload) => {
      assert.equal(`${binding}/${namespace}`, 'kubewarden/kubernetes');
      const answer = answers[operation];
      if (answer === undefined) {
        throw new Error(NO_CLUSTER_MESSAGE);
      }
      return Buffer.from(JSON.stringify(answer(JSON.parse(Buffer.from(payload).toString()) as JsonObject)));
    },
  };
}

const guest = new CelGuest();

function validate(settings: JsonObject, request: JsonObject = {}, context = contextWith()): GuestVerdict {
  const requestJson = Buffer.from(JSON.stringify(podReview(request).request));
  return guest.validate({ requestJson, settingsJson: JSON.stringify(settings), isRaw: false }, context);
}

function problems(settings: JsonValue): string {
  const verdict = guest.validateSettings(JSON.stringify(settings));
  return verdict.valid ? '' : verdict.message;
}

const ACCEPTED: GuestVerdict = { accepted: true, auditAnnotations: null, warnings: null };

function denial(message: string, code = 422): GuestVerdict {
  return { accepted: false, message, code, auditAnnotations: null, warnings: null };
}

describe('builtin:cel', () => {
  it('is a builtin guest', () => {
    const made = createBuiltinGuest('cel');
    assert.equal(made.mode, 'builtin');
    assert.doesNotThrow(() => made.checkProtocol(contextWith()));
  });

  it('denies with the message of an API server', () => {
    assert.deepEqual(validate({ validations: [{ expression: 'true' }] }), ACCEPTED);
    assert.deepEqual(validate({ validations: [{ expression: ' 1 == 2 ' }] }), denial('failed expression: 1 == 2'));
    const described = { expression: 'false', message: ' told so ', reason: 'Forbidden' };
    assert.deepEqual(validate({ validations: [described] }), denial('told so', 403));
    const computed = { expression: 'false', message: 'm', messageExpression: "'got ' + object.metadata.name" };
    assert.deepEqual(validate({ validations: [computed] }), denial('got nginx'));
    assert.deepEqual(
      validate({ validations: [{ expression: 'object.spec.nope == 1' }] }),
      denial("expression 'object.spec.nope == 1' resulted in error: no such key: nope"),
    );
  });

  it('reports all failures, with the code of the first', () => {
    const validations = [
      { expression: 'false', message: 'one', reason: 'RequestEntityTooLarge' },
      { expression: 'true', message: 'two' },
      { expression: 'false', message: 'three', reason: 'Unauthorized' },
      { expression: 'false', message: 'three' },
    ];
    assert.deepEqual(validate({ validations }), denial('one; three', 413));
    assert.deepEqual(validate({ validations: validations.slice(2) }), denial('three', 401));
  });

  it('allows what cannot be evaluated only with failurePolicy Ignore', () => {
    const validations = [{ expression: 'object.spec.nope == 1' }];
    assert.deepEqual(validate({ validations, failurePolicy: 'Ignore' }), ACCEPTED);
    const endless = [{ expression: 'lists.range(2000).all(x, lists.range(2000).all(y, true))' }];
    assert.match(String(validate({ validations: endless }).message), /operation cancelled: actual cost limit exceeded/);
    assert.equal(validate({ validations: endless, failurePolicy: 'Ignore' }).accepted, true);
  });

  it('computes variables and annotations', () => {
    const verdict = validate({
      variables: [
        { name: 'names', expression: 'object.spec.containers.map(c, c.name)' },
        { name: 'list', expression: "variables.names.join(',')" },
      ],
      validations: [{ expression: "variables.list == 'a'" }],
      auditAnnotations: [
        { key: 'names', valueExpression: "'has ' + variables.list" },
        { key: 'nothing', valueExpression: 'null' },
      ],
    });
    assert.deepEqual(verdict, { ...ACCEPTED, auditAnnotations: { names: 'has a' } });
  });

  it('evaluates only requests that match', () => {
    const rule = { apiGroups: [''], apiVersions: ['v1'], operations: ['UPDATE'], resources: ['pods'] };
    const settings = { matchConstraints: { resourceRules: [rule] }, validations: [{ expression: 'false' }] };
    assert.equal(validate(settings).accepted, true);
    assert.equal(validate(settings, { operation: 'UPDATE' }).accepted, false);
    const conditions = [{ name: 'not-for-me', expression: "request.userInfo.username != 'kubernetes-admin'" }];
    assert.equal(validate({ validations: [{ expression: 'false' }], matchConditions: conditions }).accepted, true);
  });

  it('mutates', () => {
    const settings = {
      mutations: [
        { patchType: 'JSONPatch', jsonPatch: { expression: "[JSONPatch{op: 'add', path: '/spec/x', value: 1}]" } },
        {
          patchType: 'ApplyConfiguration',
          applyConfiguration: { expression: "Object{metadata: Object.metadata{labels: {'a': 'b'}}}" },
        },
      ],
    };
    assert.deepEqual(validate(settings).mutatedObject, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'nginx', labels: { a: 'b' } },
      spec: { containers: [{ name: 'a' }], x: 1 },
    });
    assert.deepEqual(validate(settings, { object: null, operation: 'DELETE' }), ACCEPTED);
  });

  it('merges lists by the schema of the kind', () => {
    const configured = (containers: string): JsonObject => ({
      mutations: [
        {
          patchType: 'ApplyConfiguration',
          applyConfiguration: {
            expression: `Object{spec: Object.spec{containers: [Object.spec.containers{${containers}}]}}`,
          },
        },
      ],
    });
    const mutated = validate(configured("name: 'a', image: 'x'")).mutatedObject as { spec: object };
    assert.deepEqual(mutated.spec, { containers: [{ name: 'a', image: 'x' }] });
    const refused = validate(configured("name: 'a', args: ['x']"));
    assert.match(
      String(refused.message),
      /error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: \.spec\.containers\[0\]\.args/,
    );
    assert.equal(refused.mutatedObject, undefined);
    const custom = validate(configured("name: 'a'"), {
      object: { apiVersion: 'example.com/v1', kind: 'Thing', metadata: {} },
    });
    assert.match(
      String(custom.message),
      /on kinds of Kubernetes itself only, whose schema is known here: \.spec\.containers/,
    );
  });

  it('keeps integers that JavaScript numbers cannot distinguish', () => {
    const text = JSON.stringify(podReview().request).replace('"containers"', '"big":9007199254740993,"containers"');
    const settingsJson = JSON.stringify({ validations: [{ expression: 'object.spec.big != 9007199254740993' }] });
    const verdict = guest.validate({ requestJson: Buffer.from(text), settingsJson, isRaw: false }, contextWith());
    assert.equal(verdict.accepted, false);
  });
});

describe('builtin:cel with a cluster', () => {
  const paramKind = { apiVersion: 'v1', kind: 'ConfigMap' };
  const validations = [{ expression: "params.data.x == '1'", messageExpression: "'x is ' + params.data.x" }];

  it('reads the parameter in the request’s namespace', () => {
    const paramRef = { name: 'limits', parameterNotFoundAction: 'Deny' };
    const payloads: JsonObject[] = [];
    const get = (payload: JsonObject): JsonValue => {
      payloads.push(payload);
      return { data: { x: '2' } };
    };
    const settings = { paramKind, paramRef, validations };
    assert.deepEqual(validate(settings, {}, contextWith({ get_resource: get })), denial('x is 2'));
    assert.deepEqual(payloads, [
      { api_version: 'v1', kind: 'ConfigMap', name: 'limits', disable_cache: false, namespace: 'default' },
    ]);
  });

  it('evaluates every selected parameter', () => {
    const paramRef = { selector: { matchLabels: { a: 'b' } }, namespace: 'other', parameterNotFoundAction: 'Allow' };
    const list = ({ namespace, label_selector: selector }: JsonObject): JsonValue => {
      assert.deepEqual([namespace, selector], ['other', 'a=b']);
      return { items: ['1', '3', '4'].map((x) => ({ data: { x } })) };
    };
    const context = contextWith({ list_resources_by_namespace: list });
    assert.deepEqual(validate({ paramKind, paramRef, validations }, {}, context), denial('x is 3; x is 4'));
    const none = contextWith({ list_resources_by_namespace: () => ({ items: [] }) });
    assert.deepEqual(validate({ paramKind, paramRef, validations }, {}, none), ACCEPTED);
  });

  it('follows parameterNotFoundAction without a parameter', () => {
    const missing = contextWith({
      get_resource: () => {
        throw new Error("Cannot find v1/ConfigMap named 'limits' inside of namespace 'default'");
      },
    });
    const paramRef = { name: 'limits', parameterNotFoundAction: 'Deny' };
    assert.deepEqual(validate({ paramKind, paramRef, validations }, {}, missing), {
      ...denial('failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction'),
      lacksParameters: true,
    });
    const elsewhere = { ...paramRef, namespace: 'shared' };
    assert.equal(validate({ paramKind, paramRef: elsewhere, validations }, {}, missing).lacksParameters, undefined);
    const allowed = { ...paramRef, parameterNotFoundAction: 'Allow' };
    assert.deepEqual(validate({ paramKind, paramRef: allowed, validations }, {}, missing), ACCEPTED);
  });

  it('accepts settings of Kubewarden unchanged', () => {
    const settings = {
      variables: null,
      paramKind: { APIVersion: 'v1', Kind: 'ConfigMap' },
      paramRef: { Name: 'limits', Namespace: 'kube-system', ParameterNotFoundAction: 'Deny' },
      validations: [
        {
          expression: "request.uid != '' && request.object.spec == object.spec && params.data.x == '1'",
          message: '',
          messageExpression: '',
          reason: 'Unauthorized',
        },
      ],
    };
    const get = ({ namespace }: JsonObject): JsonValue => ({ data: { x: namespace === 'kube-system' ? '1' : '' } });
    assert.deepEqual(validate(settings, {}, contextWith({ get_resource: get })), ACCEPTED);
  });

  it('gives the same fields of the request’s namespace as API servers', () => {
    const settings = {
      validations: [{ expression: 'false', messageExpression: "'%s'.format([dyn(namespaceObject)])" }],
    };
    const get = (): JsonValue => ({
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: 'default', labels: { a: 'b' }, managedFields: [] },
    });
    const { message } = validate(settings, {}, contextWith({ get_resource: get }));
    assert.match(String(message), /default/);
    assert.doesNotMatch(String(message), /managedFields|apiVersion/);
  });

  it('checks permissions of users', () => {
    const expression = "authorizer.group('apps').resource('deployments').namespace('x').check('delete').allowed()";
    const canI = ({ subject_access_review: review }: JsonObject): JsonValue => {
      const { user, resource_attributes: attributes } = review as JsonObject;
      assert.deepEqual([user, (attributes as JsonObject).verb], ['kubernetes-admin', 'delete']);
      return { allowed: (attributes as JsonObject).namespace === 'x' };
    };
    const settings = { validations: [{ expression }] };
    assert.equal(validate(settings, {}, contextWith({ can_i: canI })).accepted, true);
    assert.equal(validate(settings).accepted, false, 'no authorizer is available');
  });

  it('denies when the host refuses the question, also where "not allowed" would admit', () => {
    const canI = (): JsonValue => {
      throw new EngineError('capability-refused', 'only about the user of the request');
    };
    const expression = "!authorizer.group('').resource('pods').check('get').allowed()";
    const { accepted, message } = validate({ validations: [{ expression }] }, {}, contextWith({ can_i: canI }));
    assert.equal(accepted, false);
    assert.match(String(message), /resulted in error: only about the user of the request/);
  });

  it('fails closed without a cluster, and names what is missing', () => {
    const paramRef = { name: 'limits', parameterNotFoundAction: 'Allow' };
    assert.match(String(validate({ paramKind, paramRef, validations }).message), /no cluster is configured/);
    const looks = { failurePolicy: 'Ignore', validations: [{ expression: "namespaceObject.metadata.name != ''" }] };
    assert.throws(
      () => validate(looks),
      (error) =>
        error instanceof EngineError &&
        error.code === 'capability-failed' &&
        /namespaceObject.*"default" cannot be read: no cluster/.test(error.message),
    );
  });
});

describe('settings of builtin:cel', () => {
  it('are refused with every mistake, its path and a suggestion', () => {
    const text = problems({
      validaton: [],
      validations: [
        { expresion: 'true', expression: 'objekt.spec' },
        { expression: 'object.spec.x == 1', reason: 'Why' },
      ],
      failurePolicy: 'fail',
    });
    assert.match(text, /validaton: unknown key "validaton": did you mean "validations"\?/);
    assert.match(text, /validations\[0\]\.expresion: unknown key "expresion": did you mean "expression"\?/);
    assert.match(
      text,
      /validations\[0\]\.expression: Invalid value: "objekt\.spec": compilation failed: ERROR: <input>:1:1:/,
    );
    assert.match(text, /\n \| objekt\.spec\n \| \^/);
    assert.match(text, /validations\[1\]\.reason: Unsupported value: "Why": supported values: /);
    assert.match(text, /failurePolicy: Unsupported value: "fail": supported values: "Fail", "Ignore"/);
  });

  for (const [settings, expected] of [
    [{}, /^validations: Required value: validations or auditAnnotations must contain at least one item, or mutations$/],
    [[], /expected a mapping, got a list/],
    [{ spec: { validations: [] } }, /spec: unknown key "spec": settings are what a policy has below "spec"/],
    [{ validations: [{ expression: 'params.x' }] }, /undeclared reference to 'params'/],
    [{ validations: [{ expression: '1' }] }, /must evaluate to bool but got int/],
    [{ validations: {} }, /validations: expected a list, got a mapping/],
    [{ validations: [{ expression: 'true' }], paramKind: { apiVersion: 'v1', kind: 'X' } }, /paramRef: Required value/],
    [{ mutations: [], validations: [] }, /validations: Forbidden: may not be set in a policy with mutations/],
    [{ mutations: [{ patchType: 'Patch' }] }, /patchType: Unsupported value: "Patch"/],
    [
      { mutations: [{ patchType: 'JSONPatch' }] },
      /jsonPatch: Required value: must be specified when patchType is JSONPatch/,
    ],
  ] as const) {
    it(`are refused: ${JSON.stringify(settings)}`, () => {
      assert.match(problems(settings as JsonValue), expected);
      assert.throws(() => validate(settings as JsonObject), /the settings cannot be used/);
    });
  }

  it('cannot be evaluated on raw requests', () => {
    const settingsJson = JSON.stringify({ validations: [{ expression: 'true' }] });
    assert.throws(
      () => guest.validate({ requestJson: Buffer.from('{}'), settingsJson, isRaw: true }, contextWith()),
      /does not support raw/,
    );
  });
});

const KEYS = ['validations', 'variables', 'mutations', 'matchConditions', 'auditAnnotations', 'paramKind', 'paramRef'];
const FIELDS = [
  'expression',
  'name',
  'key',
  'message',
  'messageExpression',
  'patchType',
  'jsonPatch',
  '__proto__',
  'x',
];
const EXPRESSIONS = [
  'true',
  'object.x.y',
  '1/0 == 1',
  'variables.a',
  '[',
  'object',
  'null',
  '"a".matches(object.kind)',
];

test('hostile settings and requests give verdicts or the errors of the engine', () => {
  const leaf = fc.oneof(fc.constantFrom(...EXPRESSIONS, ...FIELDS), fc.jsonValue({ maxDepth: 2 }));
  const field = fc.dictionary(fc.constantFrom(...FIELDS), leaf, { maxKeys: 4 });
  const settings = fc.dictionary(
    fc.constantFrom(...KEYS),
    fc.oneof(leaf, fc.array(fc.oneof(field, leaf), { maxLength: 3 })),
  );
  fc.assert(
    fc.property(settings, fc.jsonValue({ maxDepth: 3 }), (json, object) => {
      try {
        const isUsable = problems(json as JsonValue) === '';
        validate(json as JsonObject, { object: object as JsonValue, operation: '__proto__' });
        assert.ok(isUsable, 'settings with problems are never evaluated');
      } catch (error) {
        assert.ok(error instanceof EngineError, String(error instanceof Error ? error.stack : error));
      }
    }),
    { numRuns: 300 },
  );
});

test('an expression that fails on an object never allows it', () => {
  const settings = { validations: [{ expression: "object.spec.a.b == 'c' || object.spec.a.b != 'c'" }] };
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 4 }), (spec) => {
      const b = (spec as { a?: { b?: unknown } } | null)?.a;
      const isThere = typeof b === 'object' && b !== null && !Array.isArray(b) && Object.hasOwn(b, 'b');
      assert.equal(validate(settings, { object: { spec } as JsonObject }).accepted, isThere);
    }),
    { numRuns: 300 },
  );
});
