// Compares the validation of custom resources with a real kube-apiserver: verdicts, messages, defaults and pruning. Our own kinds
// are among them.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import {
  applyCustomResourceDefaults,
  customResourceErrors,
  definitionsOfCustomResource,
} from '../../src/apiserver/index.ts';
import type { ResourceDefinition } from '../../src/apiserver/index.ts';
import {
  ALL_KINDS,
  customResourceDefinition,
  parseFieldSelector,
  parseLabelSelector,
  SelectorError,
} from '../../src/resources/index.ts';
import type { FieldError, KubernetesObject, MutableObject, Schema } from '../../src/resources/index.ts';
import { metadataErrors, ObjectSchema } from '../../src/resources/validation/index.ts';
import { skipWithoutCluster } from '../cluster/binaries.ts';
import { type Cluster, startCluster } from '../cluster/cluster.ts';
import { eventually } from '../cluster/eventually.ts';
import {
  DEFINITION_CASES,
  FIELD_SELECTORS,
  KEYWORDS_CASES,
  KEYWORDS_SCHEMA,
  LABEL_SELECTORS,
  LOOSE_CHANGES,
  LOOSE_SCHEMA,
  LOOSE_SPEC,
  ownCases,
  RULES_CASES,
  RULES_SCHEMA,
  TIGHT_SCHEMA,
} from './crds-corpus.ts';
import type { ObjectCase } from './crds-corpus.ts';

type Mutable = MutableObject & KubernetesObject;

interface Status {
  readonly message?: string;
  readonly details?: { readonly causes?: readonly { reason: string; message: string; field: string }[] };
}

function definitionObject(plural: string, kind: string, schema: Schema): Mutable {
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.test.example.com` },
    spec: {
      group: 'test.example.com',
      scope: 'Cluster',
      names: { plural, kind },
      versions: [
        { name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: schema }, subresources: { status: {} } },
      ],
    },
  };
}

const texts = (errors: readonly { reason: string; message: string; field: string }[]): readonly string[] =>
  [...new Set(errors.map(({ reason, field, message }) => `${field}: [${reason}] ${message}`))].toSorted();

/** Prunes, defaults and validates objects of a kind, here. */
class Judge {
  readonly definition: ResourceDefinition;
  readonly schema: ObjectSchema;

  constructor(definition: ResourceDefinition) {
    this.definition = definition;
    this.schema = new ObjectSchema(definition.schema());
  }

  prepare(object: Mutable): Mutable {
    const copy = structuredClone(object);
    this.schema.applyDefaults(copy);
    this.schema.prune(copy);
    return copy;
  }

  errors(object: KubernetesObject, old?: KubernetesObject): FieldError[] {
    return [
      ...metadataErrors(object, this.definition, old),
      ...this.schema.validate(object, old, this.definition.validate?.(object, old)),
    ];
  }
}

// Concurrently: each kind is served two seconds after its definition was created.
describe('schemas as a kube-apiserver has them', { skip: skipWithoutCluster(), concurrency: true }, () => {
  let cluster: Cluster;

  before(async () => {
    cluster = await startCluster();
  });

  after(async () => {
    await cluster.stop();
  });

  async function install(crd: Mutable): Promise<void> {
    await cluster.expect('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', crd);
    await eventually(async () => {
      const path = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${crd.metadata['name']}`;
      const { body } = await cluster.request('GET', path);
      const conditions =
        (body['status'] as { conditions?: readonly { type: string; status: string }[] }).conditions ?? [];
      assert.ok(
        conditions.some(({ type, status }) => type === 'Established' && status === 'True'),
        'established',
      );
      assert.ok(!conditions.some(({ type, status }) => type === 'NonStructuralSchema' && status === 'True'));
    });
  }

  /** Compares the results for an object, here and in the API server. */
  async function compare(judge: Judge, path: string, given: ObjectCase): Promise<void> {
    const { group, version, kind } = judge.definition;
    const apiVersion = `${group}/${version}`;
    const make = (spec: unknown): Mutable => ({
      apiVersion,
      kind,
      metadata: {
        name: 'case',
        ...(judge.definition.namespaced ? { namespace: 'default' } : {}),
        ...structuredClone(given.metadata),
      },
      ...(spec === undefined ? {} : { spec: structuredClone(spec) }),
      ...(given.status === undefined ? {} : { status: given.status }),
      ...given.more,
    });
    const object = make(given.spec);
    const send = async (method: 'POST' | 'PUT', at: string, body: object): Promise<{ status: number; body: object }> =>
      cluster.request(method, at, body);
    const stored = given.before === undefined ? undefined : await cluster.expect('POST', path, make(given.before));
    if (stored !== undefined) {
      Object.assign(object.metadata, { resourceVersion: (stored as KubernetesObject).metadata.resourceVersion });
    }
    try {
      const at = stored === undefined ? `${path}?dryRun=All` : `${path}/case?dryRun=All`;
      const answer = await send(stored === undefined ? 'POST' : 'PUT', at, object);
      const mine = judge.prepare(object);
      if (stored !== undefined) {
        Object.assign(mine.metadata, {
          uid: stored.metadata.uid,
          creationTimestamp: stored.metadata.creationTimestamp,
          generation: stored.metadata.generation,
        });
      }
      // API servers drop the sent status. They set defaults before and after that.
      delete mine['status'];
      judge.schema.applyDefaults(mine);
      const errors = judge.errors(mine, stored);
      const status = answer.body as Status;
      assert.ok(
        [200, 201, 422].includes(answer.status),
        `an answer that says what is wrong: ${JSON.stringify(status)}`,
      );
      assert.deepEqual(texts(errors), answer.status === 422 ? texts(status.details?.causes ?? []) : [], given.name);
      if (answer.status !== 422) {
        const { metadata: _theirs, ...theirs } = answer.body as Mutable;
        const { metadata: _ours, ...ours } = mine;
        assert.deepEqual(JSON.parse(JSON.stringify(ours)), theirs, given.name);
      }
      const strict = await send(stored === undefined ? 'POST' : 'PUT', `${at}&fieldValidation=Strict`, object);
      const unknown = judge.schema.unknownFields(object).map((field) => `unknown field "${field}"`);
      const found = (strict.body as Status).message?.match(/unknown field "[^"]*"/gu) ?? [];
      assert.deepEqual(unknown, [...found].toSorted(), `${given.name}: unknown fields`);
    } finally {
      if (stored !== undefined) {
        await cluster.request('DELETE', `${path}/case`);
      }
    }
  }

  async function compareAll(crd: Mutable, cases: readonly ObjectCase[]): Promise<void> {
    await install(crd);
    applyCustomResourceDefaults(crd);
    assert.deepEqual(customResourceErrors(crd), []);
    const [definition] = definitionsOfCustomResource(crd);
    assert.ok(definition !== undefined);
    const judge = new Judge(definition);
    const scope = definition.namespaced ? 'namespaces/default/' : '';
    const path = `/apis/${definition.group}/${definition.version}/${scope}${definition.resource}`;
    await eventually(async () => assert.equal((await cluster.request('GET', path)).status, 200));
    const failures: string[] = [];
    for (const one of cases) {
      try {
        await compare(judge, path, one);
      } catch (error) {
        failures.push(`${one.name}: ${(error as Error).message}`);
      }
    }
    assert.equal(failures.length, 0, `${failures.length} of ${cases.length} differ:\n${failures.join('\n\n')}`);
  }

  it('judges every keyword the same', async () => {
    await compareAll(definitionObject('keywords', 'Keyword', KEYWORDS_SCHEMA), KEYWORDS_CASES);
  });

  for (const kind of ALL_KINDS) {
    it(`takes ${kind.kind}, and judges it the same`, async () => {
      const cases = ownCases(kind);
      await compareAll(structuredClone(customResourceDefinition(kind)) as Mutable, cases);
    });
  }

  it('refuses the same CustomResourceDefinitions', async () => {
    const failures: string[] = [];
    for (const [name, spec] of DEFINITION_CASES) {
      const crd = definitionObject('wrongs', 'Wrong', { type: 'object' });
      const [version] = (crd['spec'] as { versions: object[] }).versions;
      Object.assign(crd['spec'] as object, spec.spec);
      Object.assign(version ?? {}, spec.version);
      if (spec.schema !== undefined) {
        Object.assign(version ?? {}, { schema: { openAPIV3Schema: spec.schema } });
      }
      Object.assign(crd.metadata, spec.metadata);
      const answer = await cluster.request(
        'POST',
        '/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All',
        crd,
      );
      applyCustomResourceDefaults(crd);
      const status = answer.body as Status;
      const errors = texts(customResourceErrors(crd));
      const theirs = answer.status === 422 ? texts(status.details?.causes ?? []) : [];
      if (answer.status !== 422 && answer.status !== 201) {
        failures.push(`${name}: ${answer.status} ${status.message ?? ''}`);
      }
      try {
        assert.deepEqual(errors, theirs);
      } catch (error) {
        failures.push(`${name}: ${(error as Error).message}`);
      }
    }
    assert.equal(
      failures.length,
      0,
      `${failures.length} of ${DEFINITION_CASES.length} differ:\n${failures.join('\n\n')}`,
    );
  });

  it('accepts unchanged invalid values in updates, like the API server', async () => {
    const crd = definitionObject('loosely', 'Loose', LOOSE_SCHEMA);
    await install(crd);
    const path = '/apis/test.example.com/v1/loosely';
    await eventually(async () => assert.equal((await cluster.request('GET', path)).status, 200));
    const wrong = { apiVersion: 'test.example.com/v1', kind: 'Loose', metadata: { name: 'wrong' }, spec: LOOSE_SPEC };
    const stored = (await cluster.expect('POST', path, wrong)) as KubernetesObject;
    const [tight] = definitionsOfCustomResource(definitionObject('loosely', 'Loose', TIGHT_SCHEMA));
    assert.ok(tight !== undefined);
    const patch = [{ op: 'replace', path: '/spec/versions/0/schema/openAPIV3Schema', value: TIGHT_SCHEMA }];
    const file = JSON.stringify(patch);
    const { code, stderr } = await cluster.kubectl([
      'patch',
      'crd',
      'loosely.test.example.com',
      '--type=json',
      '-p',
      file,
    ]);
    assert.equal(code, 0, stderr);
    await eventually(async () => {
      const { status } = await cluster.request('POST', `${path}?dryRun=All`, { ...wrong, metadata: { name: 'new' } });
      assert.equal(status, 422);
    });
    const judge = new Judge(tight);
    const failures: string[] = [];
    for (const [name, change] of LOOSE_CHANGES) {
      const object = structuredClone(stored) as Mutable;
      Object.assign(object['spec'] as object, structuredClone(change));
      const answer = await cluster.request('PUT', `${path}/wrong?dryRun=All`, object);
      const mine = judge.prepare(object);
      const causes = (answer.body as Status).details?.causes ?? [];
      try {
        assert.deepEqual(texts(judge.errors(mine, stored)), answer.status === 422 ? texts(causes) : []);
      } catch (error) {
        failures.push(`${name} (${answer.status}): ${(error as Error).message}`);
      }
    }
    assert.equal(failures.length, 0, failures.join('\n\n'));
  });

  it('reads selectors the same', async () => {
    const failures: string[] = [];
    for (const [parameter, parse] of [
      ['labelSelector', parseLabelSelector],
      ['fieldSelector', parseFieldSelector],
    ] as const) {
      for (const text of parameter === 'labelSelector' ? LABEL_SELECTORS : FIELD_SELECTORS) {
        const answer = await cluster.request('GET', `/api/v1/namespaces?${parameter}=${encodeURIComponent(text)}`);
        const theirs = answer.status === 200 ? 'fine' : ((answer.body as Status).message ?? '');
        let ours = 'fine';
        try {
          parse(text);
        } catch (error) {
          assert.ok(error instanceof SelectorError);
          ours = error.message;
        }
        if (!theirs.endsWith(ours)) {
          failures.push(`${text}\n  ours:   ${ours}\n  theirs: ${theirs}`);
        }
      }
    }
    assert.equal(failures.length, 0, failures.join('\n'));
  });

  it('refuses server-side apply of a field that a schema does not have, and drops it otherwise', async () => {
    const spec = { type: 'object', properties: { settings: { type: 'string' } } } as const;
    await install(definitionObject('foreigns', 'Foreign', { type: 'object', properties: { spec } }));
    const object = {
      apiVersion: 'test.example.com/v1',
      kind: 'Foreign',
      metadata: { name: 'one' },
      spec: { settings: 'a', parameters: 'b' },
    };
    await eventually(async () => {
      const apply = ['apply', '--server-side', '--validate=ignore', '-f', '-'];
      const { code, stderr } = await cluster.kubectl(apply, { stdin: JSON.stringify(object) });
      assert.notEqual(code, 0);
      assert.match(stderr, /\.spec\.parameters: field not declared in schema/);
    });
    // What the docs of parameters say of other ways.
    const created = await cluster.expect<typeof object>('POST', '/apis/test.example.com/v1/foreigns', object);
    assert.deepEqual(created.spec, { settings: 'a' });
  });

  it('runs rules the same', async () => {
    await compareAll(definitionObject('rules', 'Rule', RULES_SCHEMA), RULES_CASES);
  });
});
