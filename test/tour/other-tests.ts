/** A test that shows a promise which the tour does not try. */
export interface OtherTest {
  readonly promise: string;
  /** The file that has the test, below the root. */
  readonly file: string;
  readonly title: string;
}

/** What takes crashes, several replicas, a network or a folder of manifests to show. `npm run tour` prints it. */
export const OTHER_TESTS: readonly OtherTest[] = (
  [
    [
      'what has served is enforced after a restart with all sources down',
      'test/lifecycle/scenario-suite.ts',
      '9: with all sources and the API server down, the serving revisions serve after a restart',
    ],
    [
      'a crash at any moment, and a new leader, end no enforcement',
      'test/lifecycle/scenario-suite.ts',
      '5: a crash at any step of a rollout never ends enforcement, and the rollout completes',
    ],
    [
      'policies in monitor mode reject nothing without replicas',
      'test/lifecycle/scenario-suite.ts',
      '9: with all replicas gone, a policy in monitor mode rejects nothing',
    ],
    [
      'one status write a minute for each policy in monitor mode, from all replicas together',
      'test/lifecycle/monitored.test.ts',
      'writes the count once an interval, whatever happens meanwhile, and with any other change of the status',
    ],
    [
      'the last word on the API server of Kubernetes (npm run test:full -- e2e/lifecycle)',
      'test/lifecycle/scenario-suite.ts',
      '11: policies of the cluster have the last word over those of namespaces',
    ],
    [
      'tenants are not redirected to private addresses',
      'src/modules/sources/tenant-sources.test.ts',
      'does not come from where a redirect leads to such an address',
    ],
    [
      'the status of a tenant has no byte of an answer',
      'test/lifecycle/tenant-module-answers.test.ts',
      'leaves no byte that its source sent in status, revisions and events, if it is no module',
    ],
    [
      'escaped keys are read right, and a probe says whether the runtime misreads them',
      'src/values/json.test.ts',
      'reads an escaped key right after a text whose key ends with a backslash',
    ],
    ['JSON from outside has one parser', 'test/architecture.test.ts', 'is parsed by parseJson only'],
    ['README says what happens', 'test/readme.test.ts', 'answers a review that anybody sends'],
    [
      'the manifests say why each right is there, once',
      'src/installation/objects/manifests.test.ts',
      'say of each right of the controller to write why it has it',
    ],
    [
      'NetworkPolicies are no wider than needed',
      'src/installation/objects/manifests.test.ts',
      'open no port to everybody but that of the webhook',
    ],
    [
      'SECURITY.md has the limits of the code, and tests that exist',
      'test/security-page.test.ts',
      'has the limits of the code',
    ],
  ] as const
).map(([promise, file, title]) => ({ promise, file, title }));
