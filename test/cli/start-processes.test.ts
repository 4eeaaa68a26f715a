// The processes of `portcullis start`: each one alone may end, all end with their supervisor, and each has its own credentials.
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { getPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { ApiError, KubernetesCluster, loadKubeconfig } from '../../src/cluster/index.ts';
import { eventually } from '../cluster/eventually.ts';
import { type CommandResult, portcullis } from './command.ts';
import { ROLES, StartedPortcullis } from './started.ts';

const PINNED = 'examples/pinned-images/policy.yaml';
const ANSWER = 60_000;
/** A main thread that gets this signal does nothing else any more. */
const HANG = 'SIGUSR2';
const HANGS = `data:text/javascript,process.on('${HANG}', () => { for (;;) {} })`;

const pod = (image: string): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web' },
    spec: { containers: [{ name: 'web', image }] },
  });

describe('the processes of portcullis start', () => {
  let started: StartedPortcullis;
  let policies = 0;
  before(async () => {
    started = await StartedPortcullis.startWithNode(['--import', HANGS]);
    succeeded(await started.portcullis(['apply', '-f', PINNED]));
    await isActive('pinned-images');
    await judges();
    // The auditor is the last to start.
    await allRunning();
  });
  after(() => started[Symbol.asyncDispose]());

  function succeeded({ code, stdout, stderr }: CommandResult): string {
    assert.equal(code, 0, stderr + stdout);
    return stdout;
  }

  const dryRun = (image: string): Promise<CommandResult> =>
    started.portcullis(['apply', '-f', '-', '--dry-run=server'], pod(image));

  async function isActive(name: string): Promise<void> {
    succeeded(
      await started.portcullis(['wait', `cap/${name}`, '--for=jsonpath={.status.phase}=Active', '--timeout=60s']),
    );
  }

  /** Requests are rejected and admitted by the policy. */
  async function judges(): Promise<void> {
    await eventually(
      async () => {
        assert.match((await dryRun('nginx')).stderr, /denied the request: cap\/pinned-images/);
        succeeded(await dryRun('nginx:1.29'));
      },
      { timeoutMs: ANSWER },
    );
  }

  /** The ids of all processes, as soon as none is about to be started again. */
  async function allRunning(): Promise<readonly number[]> {
    return await eventually(
      async () => {
        const running = Object.values(started.processes());
        assert.equal(running.length, ROLES.length, started.output);
        return running;
      },
      { timeoutMs: ANSWER },
    );
  }

  /** A policy that is written now becomes Active. */
  async function rollsOut(): Promise<void> {
    policies += 1;
    const name = `policy-${policies}`;
    const policy = {
      apiVersion: 'policies.kubewarden.io/v1',
      kind: 'ClusterAdmissionPolicy',
      metadata: { name },
      spec: {
        module: 'builtin:cel',
        mutating: false,
        rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['secrets'], operations: ['CREATE'] }],
        settings: { validations: [{ expression: 'true' }] },
      },
    };
    await eventually(async () => succeeded(await started.portcullis(['apply', '-f', '-'], JSON.stringify(policy))), {
      timeoutMs: ANSWER,
    });
    await isActive(name);
  }

  for (const role of ROLES) {
    it(`go on when the ${role} is killed, which is started again`, async () => {
      const before = started.processes();
      const killed = before[role] ?? assert.fail(`no process is the ${role}`);
      process.kill(killed, 'SIGKILL');
      await eventually(
        async () => {
          const now = started.processes();
          assert.ok(now[role] !== undefined && now[role] !== killed, started.output);
        },
        { timeoutMs: ANSWER },
      );
      await judges();
      await rollsOut();
      assert.match(started.output, new RegExp(`a process ended, it is started again role=${role} ended=SIGKILL`));
      assert.deepEqual({ ...started.processes(), [role]: killed }, before);
    });
  }

  it(
    'answer requests before the controller works, where both want a processor',
    { skip: process.platform !== 'linux' },
    () => {
      const { apiserver = 0, auditor = 0, controller = 0, 'policy-server': server = 0 } = started.processes();
      const [ofServer, ofController, ofAuditor] = [getPriority(server), getPriority(controller), getPriority(auditor)];
      assert.equal(getPriority(apiserver), ofServer);
      assert.ok(ofController > ofServer, `${ofController}, expected more than ${ofServer}`);
      assert.ok(ofAuditor > ofServer, `${ofAuditor}, expected more than ${ofServer}`);
    },
  );

  it('find existing objects that a policy would reject, and show them on the policy', async () => {
    const name = 'at-most-five-replicas';
    const deployment = {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'old' },
      spec: {
        replicas: 50,
        selector: { matchLabels: { app: 'old' } },
        template: { metadata: { labels: { app: 'old' } }, spec: { containers: [{ name: 'a', image: 'a:1' }] } },
      },
    };
    succeeded(await started.portcullis(['apply', '-f', '-'], JSON.stringify(deployment)));
    const policy = {
      apiVersion: 'policies.kubewarden.io/v1',
      kind: 'ClusterAdmissionPolicy',
      metadata: { name },
      spec: {
        module: 'builtin:cel',
        mutating: false,
        rules: [{ apiGroups: ['apps'], apiVersions: ['v1'], resources: ['deployments'], operations: ['CREATE'] }],
        settings: { validations: [{ expression: 'object.spec.replicas <= 5', message: 'at most five' }] },
      },
    };
    succeeded(await started.portcullis(['apply', '-f', '-'], JSON.stringify(policy)));
    const isFound = '--for=jsonpath={.status.audit.summary}=1';
    succeeded(await started.portcullis(['wait', `cap/${name}`, isFound, '--timeout=60s']));
    assert.match(
      succeeded(await started.portcullis(['get', `cap/${name}`])),
      /^NAME .* READY +FINDINGS +REASON +AGE\nat-most-five-replicas .* 1 +1 +Serving /,
    );
    assert.match(
      succeeded(await started.portcullis(['explain', `cap/${name}`])),
      /Existing objects: Complete: 1 of 1 objects would be rejected/,
    );
    succeeded(await started.portcullis(['delete', 'deployment/old']));
    const isGone = '--for=jsonpath={.status.audit.summary}=0';
    succeeded(await started.portcullis(['wait', `cap/${name}`, isGone, '--timeout=60s']));
  });

  it('judge requests while there is no controller', async () => {
    await without('controller', async () => {
      await judges();
      assert.match(succeeded(await started.portcullis(['get', 'cap'])), /^pinned-images /m);
    });
    await rollsOut();
  });

  it('reject what nobody can judge while there is no policy server, and say that it cannot start', async () => {
    await without('policy-server', async () => {
      const { code, stderr } = await dryRun('nginx:1.29');
      assert.deepEqual([code, /failed calling webhook/.test(stderr)], [1, true], stderr);
      await eventually(async () => {
        const page = succeeded(await started.portcullis(['get', 'cap/pinned-images', '-o', 'json']));
        const { status } = JSON.parse(page) as { readonly status: Readonly<Record<string, unknown>> };
        const { phase, reason, readyReplicas } = status;
        assert.deepEqual([phase, reason, readyReplicas], ['Degraded', 'ReplicaUnreachable', 0], page);
      });
    });
    await judges();
    await rollsOut();
  });

  /** Calls while a process cannot start, because its kubeconfig is missing. */
  async function without(role: 'controller' | 'policy-server', callback: () => Promise<void>): Promise<void> {
    const file = join(started.dataDir, 'credentials', `${role}.kubeconfig`);
    renameSync(file, `${file}.away`);
    try {
      process.kill(started.processes()[role] ?? assert.fail(), 'SIGKILL');
      const refused = new RegExp(`it is started again role=${role} ended="exit code 1" error=.*kubeconfig`);
      await eventually(async () => assert.match(started.output, refused), { timeoutMs: ANSWER });
      await callback();
    } finally {
      renameSync(`${file}.away`, file);
    }
    await eventually(async () => assert.match(started.output, new RegExp(`works again role=${role}`)), {
      timeoutMs: ANSWER,
    });
  }

  it('have credentials that other users of the machine cannot read', () => {
    const folder = join(started.dataDir, 'credentials');
    const files = readdirSync(folder);
    assert.deepEqual(files.toSorted(), [
      'auditor.kubeconfig',
      'controller.kubeconfig',
      'policy-server.kubeconfig',
      'tokens.json',
    ]);
    const modes = [started.kubeconfig, ...files.map((file) => join(folder, file))].map((file) => statSync(file).mode);
    assert.deepEqual(new Set(modes.map((mode) => (mode & 0o777).toString(8))), new Set(['600']));
    assert.equal(statSync(folder).mode & 0o777, 0o700);
    assert.equal(statSync(join(started.dataDir, 'sources.yml')).mode & 0o777, 0o600);
  });

  for (const [role, account, forbidden] of [
    [
      'controller',
      'portcullis-controller',
      [
        // Governance creates the namespace of a cluster, and deletes none.
        ['DELETE', '/api/v1/namespaces/default'],
        ['GET', '/api/v1/secrets'],
        ['DELETE', '/apis/policies.kubewarden.io/v1/clusteradmissionpolicies/pinned-images'],
      ],
    ],
    [
      'policy-server',
      'policy-server-default',
      [
        ['POST', '/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'mine' } }],
        ['DELETE', '/apis/policies.kubewarden.io/v1/clusteradmissionpolicies/pinned-images'],
        ['DELETE', '/apis/portcullis.dev/v1/namespaces/portcullis/policyrevisions/kw.cap.pinned-images-1'],
      ],
    ],
    [
      'auditor',
      'portcullis-auditor',
      [
        ['POST', '/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'mine' } }],
        ['DELETE', '/apis/policies.kubewarden.io/v1/clusteradmissionpolicies/pinned-images'],
        ['DELETE', '/apis/portcullis.dev/v1/namespaces/portcullis/policyrevisions/kw.cap.pinned-images-1'],
      ],
    ],
  ] as const) {
    it(`have an account of their own, which may not do what the administrator may: ${role}`, async () => {
      const file = join(started.dataDir, 'credentials', `${role}.kubeconfig`);
      const { connection } = await loadKubeconfig({ paths: [file], env: {} });
      using cluster = new KubernetesCluster(connection);
      const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' };
      const path = '/apis/authentication.k8s.io/v1/selfsubjectreviews';
      const { status } = (await cluster.request('POST', path, { body: review })).json() as {
        readonly status: { readonly userInfo: { readonly username: string } };
      };
      assert.equal(status.userInfo.username, `system:serviceaccount:portcullis:${account}`);
      for (const [method, target, body] of forbidden) {
        await assert.rejects(
          cluster.request(method, target, body === undefined ? {} : { body }),
          (error) => error instanceof ApiError && error.code === 403,
          `${method} ${target}`,
        );
      }
    });
  }

  it('end with their supervisor, even when it is killed while one of them hangs', async () => {
    const running = await allRunning();
    process.kill(started.processes().controller ?? assert.fail(), HANG);
    await started.end('SIGKILL');
    await eventually(async () => assert.deepEqual(running.filter(isRunning), []), { timeoutMs: ANSWER });
  });

  it('end before their supervisor does when it gets a signal', async () => {
    // When the test before has failed, its process still runs.
    await started.end();
    await started.begin();
    await judges();
    const running = await allRunning();
    assert.equal(await started.end('SIGTERM'), 0);
    assert.deepEqual(running.filter(isRunning), []);
  });
});

describe('portcullis start', () => {
  let folder: string;
  before(() => (folder = mkdtempSync(join(tmpdir(), 'portcullis-refusal-'))));
  after(() => rmSync(folder, { recursive: true }));

  for (const [args, code, message] of [
    [['--cluster-name', 'portcullis'], 2, /^error: --cluster-name portcullis is the namespace of Portcullis\n.*\n$/],
    [['--verification-path', 'gone.yml'], 1, /^error: gone\.yml cannot be read: .*\n.*\n$/],
    [['--sigstore-trust-config', 'README.md'], 1, /^error: README\.md: .*\n$/],
  ] as const) {
    it(`ends with what a process says that refuses its flags, once: ${args.join(' ')}`, async () => {
      const ports = ['--port', '0', '--operations-port', '0', '--cluster-port', '0'];
      const result = await portcullis(['start', ...ports, '--data-dir', join(folder, 'data'), ...args]);
      assert.match(result.stderr, message);
      assert.equal(result.code, code);
    });
  }
});

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
