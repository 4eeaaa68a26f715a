import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { isJsonObject, type JsonObject, own, parseExactJson, valueAt } from '../../values/index.ts';
import { readRequestOrObject } from './request-document.ts';
import type { RequestFlags } from './request-flags.ts';
import { ServedKinds } from './served-kinds.ts';

const POD = '{apiVersion: v1, kind: Pod, metadata: {name: web}}';
const WIDGET = { apiVersion: 'example.com/v1', kind: 'Widget', metadata: { name: 'w' } };

let folder = '';
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'portcullis-request-'));
});
after(() => rm(folder, { recursive: true }));

let files = 0;
async function file(text: string): Promise<string> {
  const path = join(folder, `${++files}.yaml`);
  await writeFile(path, text);
  return path;
}

async function requestOf(text: string, flags: RequestFlags = {}): Promise<JsonObject> {
  const { body } = await readRequestOrObject(await file(text), 'validate', flags);
  const request = valueAt(parseExactJson(Buffer.from(body).toString()), 'request');
  assert.ok(isJsonObject(request));
  return request;
}

describe('a request for an object', () => {
  it('is built around the object of a file, whatever empty documents are beside it', async () => {
    const request = await requestOf(`---\n---\n${POD}\n---\n# end\n`);
    assert.equal(request['operation'], 'CREATE');
    assert.deepEqual(valueAt(request, 'object', 'metadata'), { name: 'web', namespace: 'default' });
  });

  it('takes all that flags say', async () => {
    const request = await requestOf(POD, {
      user: 'alice',
      group: ['dev', 'ops'],
      namespace: 'shop',
      subresource: 'status',
    });
    assert.deepEqual(request['userInfo'], { username: 'alice', groups: ['dev', 'ops'] });
    assert.equal(request['namespace'], 'shop');
    assert.equal(request['subResource'], 'status');
  });

  it('is an UPDATE with an old object, and a DELETE of the object itself', async () => {
    const update = await requestOf(POD, { old: await file(POD) });
    assert.equal(update['operation'], 'UPDATE');
    assert.deepEqual(update['oldObject'], update['object']);
    const removal = await requestOf(POD, { operation: 'DELETE' });
    assert.deepEqual([removal['object'], valueAt(removal, 'oldObject', 'kind')], [null, 'Pod']);
  });

  it('keeps all digits of integers', async () => {
    const request = await requestOf(
      '{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {count: 9007199254740993}}',
    );
    assert.equal(valueAt(request, 'object', 'spec', 'count'), 9007199254740993n);
  });

  it('is no object when the file has a request: its kind is a mapping, or it is a review', async () => {
    const request = await requestOf('{kind: {group: "", version: v1, kind: Pod}, uid: a}');
    assert.equal(own(request, 'uid'), 'a');
    const reviewed = await requestOf('{apiVersion: admission.k8s.io/v1, kind: AdmissionReview, request: {uid: b}}');
    assert.equal(own(reviewed, 'uid'), 'b');
  });

  it('is an object that has a field "request"', async () => {
    const request = await requestOf('{apiVersion: v1, kind: Pod, metadata: {name: a}, request: {uid: b}}');
    assert.equal(own(request, 'operation'), 'CREATE');
  });

  for (const { what, text, flags = {}, old, message } of [
    { what: 'two objects', text: `${POD}\n---\n${POD}`, message: /expected one object, got Pod web, Pod web$/ },
    { what: 'an object and another document', text: `${POD}\n---\na: 1`, message: /Pod web, no object in line 3$/ },
    { what: 'two documents that are no objects', text: 'a: 1\n---\nb: 1', message: /holds 2 YAML documents/ },
    {
      what: 'an UPDATE of nothing',
      text: POD,
      flags: { operation: 'UPDATE' },
      message: /UPDATE needs --old/,
    },
    {
      what: 'an old object before a CREATE',
      text: POD,
      flags: { operation: 'CREATE' },
      old: POD,
      message: /no object before it/,
    },
    {
      what: 'an old object of a DELETE',
      text: POD,
      flags: { operation: 'DELETE' },
      old: POD,
      message: /the deleted one/,
    },
    {
      what: 'another old object',
      text: POD,
      old: POD.replace('web', 'api'),
      message: /--old is Pod api: expected Pod web/,
    },
    { what: 'an old request', text: POD, old: '{uid: a}', message: /has no object/ },
    {
      what: 'flags beside a request',
      text: '{uid: a}',
      flags: { user: 'b', scope: 'Cluster' },
      message: /--user, --scope: only used with an object/,
    },
    {
      what: 'a request whose aliases expand without end',
      text: `uid: a\nobject: &a [*a, *a]`,
      message: /:2:13 the alias \*a stands for a value that it is part of/,
    },
  ] satisfies readonly { what: string; text: string; flags?: RequestFlags; old?: string; message: RegExp }[]) {
    it(`is refused for ${what}`, async () => {
      const more = old === undefined ? {} : { old: await file(old) };
      await assert.rejects(requestOf(text, { ...flags, ...more }), { name: 'CliError', message });
    });
  }

  it('says that it guessed the resource of an unknown kind, unless it is stated', async () => {
    const path = await file(JSON.stringify(WIDGET));
    const { notes } = await readRequestOrObject(path, 'validate', {});
    assert.match(notes.join(), /^Widget of example\.com\/v1 is not known: assuming widgets of namespaces/);
    const stated = await readRequestOrObject(path, 'validate', {
      resource: 'widgets.v1.example.com',
      scope: 'Cluster',
    });
    assert.deepEqual(stated.notes, []);
  });
});

describe('ServedKinds', () => {
  const definition = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    spec: {
      group: 'example.com',
      names: { kind: 'Widget', plural: 'widgetz' },
      scope: 'Cluster',
      versions: [{ name: 'v1' }],
    },
  };

  it('knows builtin kinds, those of CustomResourceDefinitions, and ours', () => {
    const kinds = new ServedKinds([definition]);
    assert.deepEqual(kinds.kindOf({ apiVersion: 'apps/v1', kind: 'Deployment' }), { details: {} });
    assert.deepEqual(kinds.kindOf(WIDGET), { details: { resource: 'widgetz', scope: 'Cluster' } });
    assert.deepEqual(kinds.kindOf({ apiVersion: 'policies.kubewarden.io/v1', kind: 'PolicyServer' }), {
      details: { resource: 'policyservers', scope: 'Cluster' },
    });
  });

  it('guesses the plural of other kinds', () => {
    const guess = (kind: string): string | undefined =>
      new ServedKinds([]).kindOf({ apiVersion: 'a.example/v1', kind }).details.resource;
    assert.deepEqual(['Gateway', 'Policy', 'Ingress', 'Widget'].map(guess), [
      'gateways',
      'policies',
      'ingresses',
      'widgets',
    ]);
  });

  it('reads nothing from definitions of wrong shapes', () => {
    for (const spec of [null, [], {}, { names: [] }, { names: {}, versions: {} }, { names: {}, versions: [1] }]) {
      assert.match(new ServedKinds([{ ...definition, spec }]).kindOf(WIDGET).note ?? '', /not known/);
    }
  });
});
