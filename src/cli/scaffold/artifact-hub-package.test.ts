import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parseMetadata } from '../../modules/index.ts';
import { parseYaml } from '../../values/yaml/index.ts';
import { artifactHubPackage, type PackageOptions } from './artifact-hub-package.ts';

const ANNOTATIONS = {
  'io.kubewarden.policy.title': 'owner-label',
  'io.kubewarden.policy.description': 'Pods name their owner',
  'io.kubewarden.policy.ociUrl': 'ghcr.io/example/policies/owner-label',
  'io.kubewarden.policy.version': '0.1.0',
};
const RULES = [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] }];

function packageOf(annotations: object, options: Partial<PackageOptions> = {}, metadata: object = {}) {
  const parsed = parseMetadata({ rules: RULES, annotations, ...metadata });
  return artifactHubPackage(parsed, { createdAt: new Date('2026-01-02T03:04:05Z'), ...options });
}

describe('the package of a policy for Artifact Hub', () => {
  it('has what Artifact Hub requires', () => {
    const { text, notes } = packageOf(ANNOTATIONS);
    assert.deepEqual(notes, []);
    assert.deepEqual(parseYaml(text, 'core'), [
      {
        version: '0.1.0',
        name: 'owner-label',
        displayName: 'owner-label',
        createdAt: '2026-01-02T03:04:05.000Z',
        description: 'Pods name their owner',
        containersImages: [{ name: 'policy', image: 'ghcr.io/example/policies/owner-label:v0.1.0' }],
        annotations: {
          'kubewarden/mutation': 'false',
          'kubewarden/rules':
            "- apiGroups:\n    - ''\n  apiVersions:\n    - v1\n  resources:\n    - pods\n  operations:\n    - CREATE\n",
        },
      },
    ]);
  });

  it('has what else the metadata say', () => {
    const { text, notes } = packageOf(
      {
        ...ANNOTATIONS,
        'io.kubewarden.policy.author': 'Jane Doe <jane@example.com>, somebody',
        'io.kubewarden.policy.license': 'Apache-2.0',
        'io.kubewarden.policy.url': 'https://example.com/owner-label',
        'io.kubewarden.policy.source': 'https://github.com/example/policies',
        'io.artifacthub.displayName': 'Owner Label',
        'io.artifacthub.keywords': 'pod, owner',
        'io.artifacthub.resources': 'Pod',
        'io.kubewarden.hidden-ui': 'true',
      },
      { version: '1.2.3', releaseTag: 'owner-label/v1.2.3', questions: 'questions: []\n' },
      { mutating: true, contextAwareResources: [{ apiVersion: 'v1', kind: 'Namespace' }] },
    );
    const [content] = parseYaml(text, 'core') as Record<string, unknown>[];
    const { annotations, containersImages, displayName, homeURL, keywords, license, links, maintainers } =
      content ?? {};
    assert.deepEqual(notes, ['somebody is no maintainer of the package: expected "NAME <ADDRESS>"']);
    assert.deepEqual(
      { containersImages, displayName, homeURL, keywords, license, links, maintainers },
      {
        containersImages: [{ name: 'policy', image: 'ghcr.io/example/policies/owner-label:v1.2.3' }],
        displayName: 'Owner Label',
        homeURL: 'https://example.com/owner-label',
        keywords: ['pod', 'owner'],
        license: 'Apache-2.0',
        links: [
          {
            name: 'policy',
            url: 'https://github.com/example/policies/releases/download/owner-label/v1.2.3/policy.wasm',
          },
          { name: 'source', url: 'https://github.com/example/policies' },
        ],
        maintainers: [{ name: 'Jane Doe', email: 'jane@example.com' }],
      },
    );
    const { 'kubewarden/rules': _, ...others } = annotations as Record<string, string>;
    assert.deepEqual(others, {
      'kubewarden/mutation': 'true',
      'kubewarden/contextAwareResources': '- apiVersion: v1\n  kind: Namespace\n',
      'kubewarden/questions-ui': 'questions: []\n',
      'kubewarden/resources': 'Pod',
      'kubewarden/hidden-ui': 'true',
    });
  });

  it('needs annotations, all of which an error names', () => {
    assert.throws(() => packageOf({ 'io.kubewarden.policy.url': 'no url' }, { version: 'v1' }), {
      message: [
        'the annotation io.kubewarden.policy.title is missing',
        'the annotation io.kubewarden.policy.description is missing',
        'the annotation io.kubewarden.policy.ociUrl is missing',
        'expected a version such as 1.2.3 with --version, or in the annotation io.kubewarden.policy.version, got "v1"',
        'the annotation io.kubewarden.policy.url is no URL: "no url"',
      ].join('\n'),
    });
    for (const ociUrl of ['not a reference', 'ghcr.io/example/policy:v1']) {
      assert.throws(() => packageOf({ ...ANNOTATIONS, 'io.kubewarden.policy.ociUrl': ociUrl }), {
        message: /^the annotation io\.kubewarden\.policy\.ociUrl is no repository of a registry: /,
      });
    }
  });
});
