import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { linesOf, manifestObjects, objectId, objectText } from './manifest-objects.ts';

const HELM = `---
# Source: shop/templates/empty.yaml
---
# Source: shop/templates/service.yaml
apiVersion: v1
kind: Service
metadata:
  name: web
---
# Source: shop/templates/deployment.yaml
# A comment of the template.
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
spec:
  replicas: 9007199254740993
---
apiVersion: v1
kind: Secret
metadata: {name: token}
`;

const shown = (text: string): readonly string[] =>
  manifestObjects(text, 'm.yaml').objects.map(
    ({ object, line, template }) => `${line} ${objectText(object)}${template === undefined ? '' : ` of ${template}`}`,
  );

describe('manifestObjects', () => {
  it('reads the output of helm template: empty documents, and the template that each object is of', () => {
    assert.deepEqual(shown(HELM), [
      '5 Service web of shop/templates/service.yaml',
      '12 Deployment shop/web of shop/templates/deployment.yaml',
      '20 Secret token',
    ]);
  });

  it('keeps all digits of integers', () => {
    assert.deepEqual(manifestObjects(HELM, 'm.yaml').objects[1]?.object['spec'], { replicas: 9007199254740993n });
  });

  it('reads the items of Lists, of a PodList also without their type, and of Lists in Lists', () => {
    const list = `apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: PodList
  items:
  - metadata: {name: a}
- {apiVersion: v1, kind: Service, metadata: {name: b}}
`;
    assert.deepEqual(shown(list), ['7 Pod a', '8 Service b']);
    const { objects } = manifestObjects(list, 'm.yaml');
    assert.deepEqual(objects[0]?.object, { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a' } });
  });

  it('takes null and no items for an empty List, and objects of kinds like AllowList for no List', () => {
    const allowList = 'apiVersion: example.com/v1\nkind: AllowList\nmetadata: {name: a}';
    const lists = ['kind: List\nitems: null', 'kind: List', 'kind: PodList\nitems:'].map(
      (text) => `apiVersion: v1\n${text}`,
    );
    assert.deepEqual(shown([...lists, allowList].join('\n---\n')), ['12 AllowList a']);
    assert.deepEqual(manifestObjects(lists.join('\n---\n'), 'm.yaml').others, []);
  });

  it('refuses a List whose items are no list, with its line', () => {
    assert.throws(() => manifestObjects('# a\napiVersion: v1\nkind: List\nitems: {a: 1}', 'm.yaml'), {
      message: 'm.yaml:2: items of a List: expected a list of objects, got a mapping',
    });
  });

  it('reads JSON, indented by tabs too', () => {
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a/b\u{1F600}' } };
    assert.deepEqual(shown(JSON.stringify(pod, undefined, '\t')), ['1 Pod a/b\u{1F600}']);
  });

  it('tells of documents that are no objects, among them those of Kustomize, with their lines', () => {
    const text =
      'replicas: 3\n---\napiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n---\n- a\n---\nkind: Pod\n';
    assert.deepEqual(manifestObjects(text, 'm.yaml').others, [1, 3, 6, 8]);
  });

  it('finds the lines of fields, and of the nearest fields around them', () => {
    const [service, deployment] = manifestObjects(HELM, 'm.yaml').objects;
    const lineOf = linesOf(HELM);
    assert.equal(lineOf(deployment?.at ?? assert.fail(), ['spec', 'replicas']), 18);
    assert.equal(lineOf(deployment?.at ?? assert.fail(), ['spec', 'template', 'spec']), 17);
    assert.equal(lineOf(service?.at ?? assert.fail(), []), 5);
  });

  for (const { what, text, message } of [
    { what: 'what is not YAML', text: 'a: [', message: /^m\.yaml:1:\d+ is not YAML: / },
    {
      what: 'a kind that is none',
      text: 'apiVersion: v1\nkind: "::error::x"\n',
      message: /^m\.yaml:1: expected a kind/,
    },
    {
      what: 'aliases that expand to more than memory holds',
      text: Array.from({ length: 9 }, (_, at) => `a${at}: &a${at} [${`*a${at - 1},`.repeat(at === 0 ? 0 : 9)} x]`).join(
        '\n',
      ),
      message: /^m\.yaml:7:34 the aliases up to \*a5 stand for more than 1000000 values/,
    },
    {
      what: 'a document that contains itself',
      text: '&a {apiVersion: v1, kind: Pod, spec: *a}',
      message: /^m\.yaml:1:38 the alias \*a stands for a value that it is part of/,
    },
    { what: 'nesting without end', text: '['.repeat(100_000), message: /is not YAML/ },
    {
      what: 'a number that JSON does not have',
      text: 'apiVersion: v1\nkind: Pod\nspec: {n: .nan}',
      message: /finite number/,
    },
  ]) {
    it(`refuses ${what}`, () => {
      assert.throws(() => manifestObjects(text, 'm.yaml'), { name: 'CliError', message });
    });
  }

  it('suggests the output of Helm for a template', () => {
    const text = 'apiVersion: v1\nkind: Pod\nmetadata:\n  {{- include "labels" . }}\n  name: x\n';
    assert.throws(() => manifestObjects(text, 'm.yaml'), { hint: /helm template/ });
  });

  it('reads a text with a million comments and many objects', () => {
    const text = '# Source: x\n'.repeat(1_000) + '---\napiVersion: v1\nkind: Pod\n'.repeat(1_000);
    const { objects } = manifestObjects(text, 'm.yaml');
    assert.deepEqual([objects.length, objects[0]?.template, objects[1]?.template], [1_000, 'x', undefined]);
  });

  it('reads or refuses any text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        try {
          manifestObjects(text, 'm.yaml');
        } catch (error) {
          assert.equal((error as Error).name, 'CliError');
        }
      }),
    );
  });
});

describe('an object for messages', () => {
  it('has no control characters, whatever its name', () => {
    const metadata = { name: '\u001B[31mred\n::error::x', namespace: 'a\tb' };
    assert.equal(objectText({ apiVersion: 'v1', kind: 'Pod', metadata }), 'Pod a b/red ::error::x');
    assert.equal(objectText({ kind: 'Pod', metadata: { generateName: 'web-' } }), 'Pod web-*');
    assert.equal(objectText({ kind: 'Pod', metadata: [] }), 'Pod without a name');
  });

  it('is identified in all versions of its group, and without the namespace that it is in anyway', () => {
    const one = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web' } };
    const other = { ...one, apiVersion: 'apps/v1beta1', metadata: { name: 'web', namespace: 'default' } };
    assert.equal(objectId(one), objectId(other));
    assert.notEqual(objectId(one), objectId({ ...one, apiVersion: 'v1' }));
  });
});
