// `portcullis test -p`, and `portcullis run` with a plain object, as processes.
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { EXAMPLES, portcullis, ROOT } from './command.ts';

interface Report {
  readonly summary: Readonly<Record<'resources' | 'pass' | 'fail' | 'warn' | 'error' | 'skip', number>>;
  readonly resources: readonly {
    readonly kind: string;
    readonly name: string;
    readonly template?: string;
    readonly results: readonly { readonly policy: string; readonly result: string; readonly message?: string }[];
    readonly mutated?: { readonly metadata: { readonly labels: Readonly<Record<string, string>> } };
  }[];
}

const LIMIT = join(ROOT, EXAMPLES, 'replica-limit/policy.yaml');
const HELM = join(ROOT, 'test/fixtures/manifests/helm-template.yaml');

let folder = '';
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'portcullis-manifests-'));
  for (const [name, text] of Object.entries({
    'app/deployment.yaml': deployment('web', 2),
    'app/values.yaml': 'replicas: 2',
    'mistaken.yaml': MISTAKEN,
    'three.yaml': `${THREE}\n---\n${THREE_BINDING}`,
    'placed.yaml': deployment('placed', 2).replace('"placed"', '"placed","namespace":"default"'),
    'old/web.yaml': deployment('web', 1),
    'old/gone.yaml': deployment('gone', 1),
    'namespaces.yaml': `${namespace('default', 'false')}\n---\n${namespace('shop', 'true')}`,
    'x.portcullis-test.yml': 'policy: {module: builtin:cel}\ncases: []',
  })) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), text);
  }
});
after(() => rm(folder, { recursive: true }));

/** A policy whose rules and expression name what does not exist. */
const MISTAKEN = JSON.stringify({
  apiVersion: 'policies.kubewarden.io/v1',
  kind: 'ClusterAdmissionPolicy',
  metadata: { name: 'mistaken' },
  spec: {
    module: 'builtin:cel',
    mutating: false,
    rules: [
      { apiGroups: ['apps'], apiVersions: ['v1'], resources: ['deployments', 'deployment'], operations: ['CREATE'] },
    ],
    settings: { validations: [{ expression: '!has(object.spec.replica) || object.spec.replica < 3' }] },
  },
});

const KUBERNETES = { apiVersion: 'admissionregistration.k8s.io/v1', metadata: { name: 'three' } };
/** A policy of Kubernetes itself. */
const THREE = JSON.stringify({
  ...KUBERNETES,
  kind: 'ValidatingAdmissionPolicy',
  spec: {
    matchConstraints: {
      resourceRules: [{ apiGroups: ['apps'], apiVersions: ['v1'], resources: ['deployments'], operations: ['CREATE'] }],
    },
    validations: [{ expression: 'object.spec.replicas <= 3' }],
  },
});
const THREE_BINDING = JSON.stringify({
  ...KUBERNETES,
  kind: 'ValidatingAdmissionPolicyBinding',
  spec: { policyName: 'three', validationActions: ['Deny'] },
});

const at = (name: string): string => join(folder, name);
const test = (...args: readonly string[]): ReturnType<typeof portcullis> => portcullis(['test', ...args]);

function deployment(name: string, replicas: number): string {
  return JSON.stringify({ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name }, spec: { replicas } });
}

function namespace(name: string, enforce: string): string {
  const labels = { 'examples.portcullis.dev/enforce': enforce };
  return JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } });
}

async function reportOf(args: readonly string[], stdin = ''): Promise<Report & { readonly code: number | null }> {
  const { stdout, stderr, code } = await portcullis(['test', '-o', 'json', ...args], { stdin });
  assert.notEqual(stdout, '', stderr);
  return { ...(JSON.parse(stdout) as Report), code };
}

const outcomes = ({ resources }: Report): readonly string[] =>
  resources.flatMap(({ kind, name, results }) =>
    results.map(({ policy, result }) => `${kind} ${name} ${policy} ${result}`),
  );

describe('portcullis test -p', { concurrency: 2 }, () => {
  it('warns of rules and expressions about what does not exist, at their places in the file', async () => {
    const { code, stdout, stderr } = await test('-p', at('mistaken.yaml'), at('app/deployment.yaml'), '-o', 'github');
    assert.equal(code, 0);
    const placeOf = (text: string): string => `${at('mistaken.yaml')}:1:${MISTAKEN.indexOf(text) + 1}`;
    const [rule = '', type = ''] = stderr.split('\n');
    assert.ok(rule.startsWith(`warning: ${placeOf('deployment"')} ClusterAdmissionPolicy mistaken: spec.rules[0]`));
    assert.match(rule, /: Kubernetes has no resource "deployment" .*deployments/);
    assert.ok(type.startsWith(`warning: ${placeOf('(object.spec.replica)')} ClusterAdmissionPolicy mistaken: `), type);
    assert.match(type, /: undefined field 'replica' at 1:5/);
    assert.deepEqual(stdout.match(/^::warning .*,line=1,col=\d+,title=[^:]*/gm)?.length, 2);
  });

  for (const [format, pattern] of [
    [
      'junit',
      /<testsuite [^>]*tests="0"[^>]*><system-out>warning .*mistaken\.yaml:1:\d+ .*\nwarning .*undefined field/,
    ],
    ['tap', /^# warning: .*mistaken\.yaml:1:\d+ .*\n# warning: .*undefined field/m],
  ] as const) {
    it(`has the warnings in ${format}`, async () => {
      const { code, stdout } = await test('-p', at('mistaken.yaml'), at('app/deployment.yaml'), '-o', format);
      assert.equal(code, 0);
      assert.match(stdout, pattern);
    });
  }

  it('tests policies of several files on the output of helm template', async () => {
    const policies = ['cost-center', 'pod-privileged'].flatMap((name) => [
      '-p',
      join(ROOT, EXAMPLES, name, 'policy.yaml'),
    ]);
    const report = await reportOf([...policies, '-p', LIMIT, '-'], await readFile(HELM, 'utf8'));
    assert.equal(report.code, 1);
    assert.equal(report.summary.resources, 4);
    const [, service, web] = report.resources;
    assert.equal(service?.template, 'shop/templates/service.yaml');
    assert.ok(service?.results.every(({ result }) => result === 'skip'));
    assert.equal(web?.mutated?.metadata.labels['cost-center'], 'default');
    const limit = web?.results.find(({ policy }) => policy === 'cap/replica-limit');
    assert.deepEqual([limit?.result, limit?.message], ['fail', 'at most 5 replicas are allowed, got 12']);
  });

  it("tests Kubernetes' own policies beside ours", async () => {
    const report = await reportOf(['-p', at('three.yaml'), '-p', LIMIT, '--namespace', 'shop', HELM]);
    const results = new Map(
      report.resources.find(({ kind }) => kind === 'Deployment')?.results.map((one) => [one.policy, one]),
    );
    assert.deepEqual([results.get('vap/three')?.result, results.get('cap/replica-limit')?.result], ['fail', 'fail']);
    assert.match(results.get('vap/three')?.message ?? '', /object\.spec\.replicas <= 3/);
    assert.deepEqual([report.summary.error, report.code], [0, 1]);
  });

  it('has the line of a field of a pod template', async () => {
    const policy = {
      apiVersion: 'policies.kubewarden.io/v1',
      kind: 'ClusterAdmissionPolicy',
      metadata: { name: 'pinned' },
      spec: {
        module: 'builtin:cel',
        mutating: false,
        podTemplates: 'Enforce',
        rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] }],
        settings: { validations: [{ expression: 'false', message: 'spec.containers[0].image: expected a tag' }] },
      },
    };
    await writeFile(at('pinned.yaml'), JSON.stringify(policy));
    const { stdout } = await test('-p', at('pinned.yaml'), HELM, '-o', 'github');
    const lines = (await readFile(HELM, 'utf8')).split('\n');
    const places = [...stdout.matchAll(/^::error file=[^,]*,line=(\d+).*Deployment.*::in the pod template/gm)];
    assert.deepEqual(
      places.map(([, line]) => lines[Number(line) - 1]?.trim().split(':')[0]),
      ['image'],
    );
  });

  it('matches namespaces among the manifests, and that of --namespace for objects that name none', async () => {
    const resources = [at('app/deployment.yaml'), at('placed.yaml'), at('namespaces.yaml')];
    const [default_, shop] = await Promise.all([
      reportOf(['-p', LIMIT, '--filter', 'Deployment', ...resources]),
      reportOf(['-p', LIMIT, '--filter', 'Deployment', '--namespace', 'shop', ...resources]),
    ]);
    const placed = 'Deployment placed cap/replica-limit skip';
    assert.deepEqual(outcomes(default_), ['Deployment web cap/replica-limit skip', placed]);
    assert.deepEqual(outcomes(shop), ['Deployment web cap/replica-limit pass', placed]);
    assert.equal(default_.code, 0);
  });

  it('compares with objects before the change, and reports those that are gone', async () => {
    const { stdout, stderr, code } = await test('-p', LIMIT, '--old', at('old'), at('app'), '-v');
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^Deployment web +cap\/replica-limit +pass/m);
    assert.match(stderr, /note: not Kubernetes objects, and not tested: .*values\.yaml:1/);
    assert.match(stderr, /note: only in --old, and not tested: Deployment gone; /);
  });

  it('says that nothing applies, and why with -v', async () => {
    const { stdout, stderr, code } = await test('-p', LIMIT, '-v', at('namespaces.yaml'));
    assert.equal(code, 0);
    assert.match(
      stdout,
      /^Namespace shop +cap\/replica-limit +skip +no rule is for CREATE of namespaces \(resources: deployments\)$/m,
    );
    assert.match(stderr, /note: no policy applies to any resource$/m);
  });

  it('writes reports in every format to files', async () => {
    const formats = ['json', 'yaml', 'junit', 'sarif', 'github', 'tap', 'table'];
    const files = formats.flatMap((format) => ['--output-file', `${format}=${at(`report.${format}`)}`]);
    const { code } = await test('-p', LIMIT, HELM, ...files);
    assert.equal(code, 1);
    const texts = await Promise.all(formats.map((format) => readFile(at(`report.${format}`), 'utf8')));
    for (const text of texts) {
      assert.match(text, /at most 5 replicas are allowed, got 12/);
    }
    assert.match(
      texts[4] ?? '',
      /^::error file=.*helm-template\.yaml,line=37,title=cap\/replica-limit of Deployment release-shop::/,
    );
  });

  for (const { what, args, stdin, code, message } of [
    {
      what: 'a request',
      args: ['-p', LIMIT, '-'],
      stdin: '{apiVersion: admission.k8s.io/v1, kind: AdmissionReview, request: {}}',
      code: 2,
      message: /standard input:1 AdmissionReview without a name is a request and no object/,
    },
    { what: 'no manifests', args: ['-p', LIMIT], code: 2, message: /no manifests to test the policies on/ },
    {
      what: 'a test file',
      args: ['-p', LIMIT, 'x.portcullis-test.yml'],
      code: 2,
      message: /is a test file, which names its policy itself/,
    },
    {
      what: 'standard input with --watch',
      args: ['-p', LIMIT, '--watch', '-'],
      code: 2,
      message: /cannot be read again/,
    },
    {
      what: 'flags of requests without -p',
      args: ['--user', 'a', '--verbose'],
      code: 2,
      message: /--user, --verbose: only used with -p/,
    },
    {
      what: 'standard input twice',
      args: ['-p', '-', '-'],
      code: 2,
      message: /only one file can come from standard input/,
    },
    {
      what: 'files without policies',
      args: ['-p', 'namespaces.yaml', HELM],
      code: 2,
      message: /namespaces\.yaml: no policies/,
    },
    {
      what: 'an UPDATE of an object that --old lacks',
      args: ['-p', LIMIT, '--operation', 'UPDATE', '--old', 'old', '-'],
      stdin: deployment('new', 1),
      code: 2,
      message: /standard input:1 Deployment new has no object before the change in old/,
    },
    {
      what: 'a filter that nothing matches',
      args: ['-p', LIMIT, '--filter', 'nothing', HELM],
      code: 2,
      message: /nothing matches --filter nothing/,
    },
    {
      what: 'a manifest without -p',
      args: ['app/deployment.yaml'],
      code: 2,
      message: /is a Kubernetes object, and no test file[^]*test -p POLICY/,
    },
  ]) {
    it(`refuses ${what}`, async () => {
      const result = await portcullis(['test', ...args], { cwd: folder, ...(stdin === undefined ? {} : { stdin }) });
      assert.match(`${result.stdout}${result.stderr}`, message);
      assert.equal(result.code, code);
    });
  }
});

describe('portcullis run with a plain object', { concurrency: 2 }, () => {
  const MODULE = join(ROOT, EXAMPLES, 'required-labels/policy.wasm');
  const SETTINGS = '{"labels": ["app.kubernetes.io/name"]}';
  const POD = 'apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n';

  it('evaluates the request that an API server would send for it', async () => {
    const { stdout, code } = await portcullis(
      ['run', MODULE, '-r', '-', '--settings-json', SETTINGS, '--user', 'alice'],
      {
        stdin: POD,
      },
    );
    assert.equal(code, 0);
    assert.match(stdout, /"allowed":false,"status":\{"message":"Pod \\"web\\" has no label/);
  });

  it('needs one object, and no flags beside a request', async () => {
    const many = await portcullis(['run', MODULE, '-r', HELM, '--settings-json', SETTINGS]);
    assert.match(many.stderr, /expected one object, got ServiceAccount release-shop, Service release-shop, /);
    const raw = await portcullis(['run', MODULE, '-r', '-', '--raw', '--user', 'a'], { stdin: POD });
    assert.match(raw.stderr, /--user: only used with an object, not with --raw/);
    assert.deepEqual([many.code, raw.code], [1, 2]);
  });
});
