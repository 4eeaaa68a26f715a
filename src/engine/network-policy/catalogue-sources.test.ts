import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { describe, it } from 'node:test';

const FOLDER = new URL('catalogue/', import.meta.url);

/** What says the same tomorrow: a file at a tag or a commit, a discussion, a release, an advisory, a page of a version. */
const PINNED = [
  /^https:\/\/github\.com\/[^/]+\/[^/]+\/(?:blob|tree)\/(?:v?\d+\.\d[^/]*|[0-9a-f]{40})\/\S+$/,
  /^https:\/\/github\.com\/[^/]+\/[^/]+\/(?:issues|pull|commit|releases\/tag|security\/advisories)\/\S+$/,
  /^https:\/\/github\.com\/advisories\/GHSA-/,
  /^https:\/\/docs\.redhat\.com\/en\/documentation\/openshift_container_platform\/\d+\.\d+\//,
];
/** Pages without versions. May only become shorter. */
const UNPINNED = ['https://cloud.google.com/kubernetes-engine/docs/concepts/dataplane-v2'];

const sources = readdirSync(FOLDER).flatMap((file) =>
  [...readFileSync(new URL(file, FOLDER), 'utf8').matchAll(/^\s*- (https:\S+)$/gm)].map(([, url = '']) => ({
    file,
    url,
  })),
);

describe('the sources of the catalogue', () => {
  it('are pinned: none is the root of a repository, or a branch that moves on', () => {
    const moving = sources.filter(({ url }) => !PINNED.some((form) => form.test(url)) && !UNPINNED.includes(url));
    assert.deepEqual(moving, []);
  });

  it('that are not pinned are still in use', () => {
    assert.deepEqual(
      UNPINNED.filter((page) => !sources.some(({ url }) => url === page)),
      [],
    );
  });

  for (const url of [
    'https://github.com/kubeovn/kube-ovn',
    'https://github.com/kubeovn/kube-ovn/tree/v1.8.0',
    'https://github.com/projectcalico/calico/blob/HEAD/felix/rules/policy.go',
    'https://github.com/antrea-io/antrea/blob/main/CHANGELOG/CHANGELOG-1.1.md',
    'https://github.com/weaveworks/weave/blob/master/CHANGELOG.md',
    'https://docs.redhat.com/en/documentation/openshift_container_platform/latest/html/network_security/network-policy',
  ]) {
    it(`refuse ${url}`, () => assert.ok(!PINNED.some((form) => form.test(url))));
  }
});
