import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parsePolicies } from '../../engine/index.ts';
import { parseYaml } from '../../values/yaml/index.ts';
import type { JsonObject } from '../../values/index.ts';
import { policiesIn } from './policy-files.ts';
import { warningText } from './policy-warning.ts';
import { typeWarnings } from './type-warnings.ts';

function textsOf(yaml: string): readonly string[] {
  const manifests = (parseYaml(yaml) as JsonObject[]).map((object) => ({ object }));
  return typeWarnings({ manifests }).map(warningText);
}

const policy = (rule: string, expression: string, kind = 'ClusterAdmissionPolicy'): string => `
apiVersion: policies.kubewarden.io/v1
kind: ${kind}
metadata: {name: one}
spec:
  module: builtin:cel
  rules: [{operations: [CREATE], ${rule}}]
  settings: {validations: [{expression: "${expression}"}]}
`;
const PODS = 'apiGroups: [""], apiVersions: [v1], resources: [pods]';

describe('warnings about policies without a cluster', () => {
  it('are about the types of expressions', () => {
    assert.deepEqual(textsOf(policy(PODS, 'object.spec.volumes.all(v, !has(v.hostpath))')), [
      "ClusterAdmissionPolicy one: spec.settings.validations[0].expression: undefined field 'hostpath' at 1:32, in v1 Pod: did you mean 'hostPath'?",
    ]);
    assert.deepEqual(textsOf(policy(PODS, 'object.spec.volumes.all(v, !has(v.hostPath))')), []);
  });

  for (const [rule, message] of [
    [
      'apiGroups: [apps], apiVersions: [v1beta1, v1beta2], resources: [deployments]',
      'apiVersions: Kubernetes no longer serves deployments in version "v1beta1", "v1beta2": it serves "v1"',
    ],
    [
      'apiGroups: [extensions], apiVersions: [v1beta1], resources: [deployments]',
      'apiGroups: Kubernetes has no API group "extensions": deployments are in "apps"',
    ],
    [
      'apiGroups: [networking.k8s.io], apiVersions: [v1beta1], resources: [ingresses/status]',
      'apiVersions: Kubernetes no longer serves ingresses in version "v1beta1": it serves "v1"',
    ],
    [
      'apiGroups: [batch], apiVersions: [v1beta1], resources: ["*"]',
      'apiVersions: Kubernetes no longer serves resources of the group in version "v1beta1": it serves "v1"',
    ],
  ] as const) {
    it(`are about removed versions: ${rule}`, () => {
      assert.deepEqual(textsOf(policy(rule, 'true')), [`ClusterAdmissionPolicy one: spec.rules[0].${message}`]);
    });
  }

  it('are not about groups that may have custom kinds, nor about versions of some releases', () => {
    for (const rule of [
      'apiGroups: [example.com], apiVersions: [v1], resources: [widgets]',
      'apiGroups: [apps], apiVersions: [v1beta7], resources: [deployments]',
      'apiGroups: [flowcontrol.apiserver.k8s.io], apiVersions: [v1beta3], resources: [flowschemas]',
      'apiGroups: [networking.k8s.io], apiVersions: [v1beta1], resources: [ingresses, servicecidrs]',
      'apiGroups: [networking.k8s.io], apiVersions: [v1beta1], resources: ["*"]',
      'apiGroups: ["*"], apiVersions: ["*"], resources: ["*"]',
    ]) {
      assert.deepEqual(textsOf(policy(rule, 'object.spec.anything == 1')), [], rule);
    }
    assert.deepEqual(
      textsOf(policy('apiGroups: [apps], apiVersions: [v1, v1beta1], resources: [deployments]', 'true')),
      [],
    );
  });

  it('are about policies of Kubernetes, and kinds that manifests define', () => {
    const texts = textsOf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions: [{name: v1, served: true, schema: {openAPIV3Schema: {type: object, properties: {size: {type: integer}}}}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: two}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [example.com], apiVersions: [v1], resources: [widgets], operations: [CREATE]}]
  validations: [{expression: object.siz > 1}]
`);
    assert.deepEqual(texts, [
      "ValidatingAdmissionPolicy two: spec.validations[0].expression: undefined field 'siz' at 1:7, in example.com/v1 Widget: did you mean 'size'?",
    ]);
  });

  it('are about an entry of a policies file for the kinds of its requests', () => {
    const settings = { validations: [{ expression: 'object.spec.hostNetwok' }] };
    const entries = {
      one: { module: 'builtin:cel', settings },
      group: { expression: 'a()', message: 'no', policies: { a: { module: 'builtin:cel', settings } } },
    };
    const { policies } = parsePolicies(JSON.stringify(entries), 'policies.yml');
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a' } };
    const fieldsOf = (objects: readonly unknown[]): readonly string[] =>
      policies.flatMap((definition) =>
        typeWarnings({ manifests: [], entries: [{ definition }], objects }).map(({ field }) => field),
      );
    assert.deepEqual(fieldsOf([pod, pod]), [
      'settings.validations[0].expression',
      'policies.a.settings.validations[0].expression',
    ]);
    assert.deepEqual(fieldsOf([null, 1, {}]), []);
  });

  it('have the place of the mistake in the file, whatever the style of the text', () => {
    const rules = `[{operations: [CREATE], ${PODS}}]`;
    const head = 'apiVersion: policies.kubewarden.io/v1\nkind: ClusterAdmissionPolicy\n';
    const text = `${head}metadata: {name: one}
spec:
  mutating: false
  module: builtin:cel
  rules: ${rules}
  settings:
    validations:
      - expression: object.spec.hostNetwok
      - expression: "object.spec.hostPit"
      - expression: |

          object.spec.containers.all(c,
            has(c.imag))
      - expression: >-
          object.metadata.name == 'é😀' &&
          object.spec.containers.all(c, has(c.imge))
      - expression: "object.metadata.name != \\"\\" && object.spec.tolerance"
`;
    const { manifests } = policiesIn([{ text, name: 'policy.yaml', folder: '/' }], {});
    const lines = text.split('\n');
    const found = typeWarnings({ manifests }).map(({ place, message }) => {
      assert.equal(place?.file, 'policy.yaml');
      return [message.split(' at ', 1)[0], lines[place.line - 1]?.slice(place.column - 1)];
    });
    assert.deepEqual(found, [
      ["undefined field 'hostNetwok'", '.hostNetwok'],
      ["undefined field 'hostPit'", '.hostPit"'],
      ["undefined field 'imag'", '(c.imag))'],
      ["undefined field 'imge'", '(c.imge))'],
      // Escapes: the beginning of the expression.
      ["undefined field 'tolerance'", String.raw`object.metadata.name != \"\" && object.spec.tolerance"`],
    ]);
  });

  it('are not about manifests that cannot be loaded', () => {
    for (const spec of [
      '1',
      '{rules: 1, module: a}',
      '{rules: [1], module: 2}',
      '{rules: [{}], policies: []}',
      '{rules: [{}], module: "builtin:cel", settings: 1}',
    ]) {
      assert.deepEqual(
        textsOf(`{apiVersion: policies.kubewarden.io/v1, kind: AdmissionPolicy, metadata: 1, spec: ${spec}}`),
        [],
        spec,
      );
    }
    assert.deepEqual(
      textsOf('{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, spec: {validations: 1}}'),
      [],
    );
  });
});
