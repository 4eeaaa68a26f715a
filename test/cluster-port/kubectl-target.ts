// Runs kubectl on a real cluster, or on an embedded one through its gateway.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EmbeddedCluster, Gateway, kubeconfigText } from '../../src/apiserver/index.ts';
import { findBinary } from '../cluster/binaries.ts';
import { type Cluster, startCluster } from '../cluster/cluster.ts';
import { eventually } from '../cluster/eventually.ts';
import { createLoopbackCertificate } from '../cluster/loopback-certificate.ts';

/** One call of kubectl. */
export interface Command {
  readonly args: readonly string[];
  readonly stdin?: string;
  readonly user?: 'admin' | 'alice';
  /** The script that `kubectl edit` opens as editor. */
  readonly editor?: string;
  /** Files by name, in kubectl's working folder. */
  readonly files?: Readonly<Record<string, string>>;
}

export interface Outcome {
  readonly stdout: string;
  readonly stderr: string;
  readonly code: number;
}

/** A cluster for kubectl. */
export interface KubectlTarget extends AsyncDisposable {
  run(command: Command): Promise<Outcome>;
  /** Runs until it has printed `lines` lines, and calls `meanwhile` after the first. Returns the output. */
  watch(command: Command, lines: number, meanwhile: () => Promise<void>): Promise<string>;
}

const USERS = ['admin', 'alice'] as const;

/** A kube-apiserver. */
export async function realTarget(): Promise<KubectlTarget> {
  const cluster = await startCluster({ users: { alice: { groups: ['team'] } } });
  await refuseRepairEvents(cluster);
  const tokens = { admin: cluster.adminToken, alice: cluster.token('alice') };
  const ca = await readFile(cluster.caFile, 'utf8');
  return await target({ server: cluster.url, ca, tokens, stop: () => cluster.stop() });
}

/**
 * Refuses the events of the API server's own controller that repairs Service addresses. It watches Services and IPAddresses
 * separately, and records `ClusterIPNotAllocated` for a new Service whenever the second watch is late:
 * https://github.com/kubernetes/kubernetes/blob/v1.34.4/pkg/registry/core/service/ipallocator/controller/repairip.go
 */
async function refuseRepairEvents(cluster: Cluster): Promise<void> {
  const reportingController = 'ipallocator-repair-controller';
  const name = 'no-repair-events';
  const policies = '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies';
  const bindings = '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings';
  const rule = { apiGroups: ['events.k8s.io'], apiVersions: ['v1'], resources: ['events'], operations: ['CREATE'] };
  await cluster.expect('POST', policies, {
    metadata: { name },
    spec: {
      matchConstraints: { resourceRules: [rule] },
      validations: [{ expression: `object.reportingController != '${reportingController}'` }],
    },
  });
  await cluster.expect('POST', bindings, {
    metadata: { name },
    spec: { policyName: name, validationActions: ['Deny'] },
  });
  await eventually(async () => {
    const { body } = await cluster.request('POST', '/apis/events.k8s.io/v1/namespaces/default/events?dryRun=All', {
      metadata: { name: 'repair' },
      eventTime: new Date().toISOString().replace('Z', '000Z'),
      type: 'Warning',
      reason: 'ClusterIPNotAllocated',
      action: 'ClusterIPAllocation',
      reportingController,
      reportingInstance: reportingController,
    });
    assert.match(String(body['message']), /denied request/, 'events of the repair controller are refused');
  });
}

/** An embedded cluster, in memory. */
export async function embeddedTarget(): Promise<KubectlTarget> {
  const tokens = { admin: 'admin-token', alice: 'alice-token' };
  const tls = await createLoopbackCertificate();
  const cluster = await EmbeddedCluster.open({
    tokens: [
      {
        token: tokens.admin,
        user: { username: 'admin', uid: 'admin', groups: ['system:masters', 'system:authenticated'] },
      },
      { token: tokens.alice, user: { username: 'alice', uid: 'alice', groups: ['team', 'system:authenticated'] } },
    ],
  });
  const { authenticator } = cluster;
  const gateway = new Gateway({ cluster, authenticator, tls, onError: (error) => console.error(error) });
  const { url } = await gateway.start({ port: 0 });
  const stop = async (): Promise<void> => {
    await gateway.stop();
    await cluster.close();
  };
  return await target({ server: url, ca: tls.cert, tokens, stop });
}

interface Access {
  readonly server: string;
  readonly ca: string;
  readonly tokens: Readonly<Record<(typeof USERS)[number], string>>;
  readonly stop: () => Promise<void>;
}

async function target({ server, ca, tokens, stop }: Access): Promise<KubectlTarget> {
  const program = findBinary('kubectl') ?? 'kubectl';
  const folder = await mkdtemp(join(tmpdir(), 'portcullis-kubectl-'));
  for (const user of USERS) {
    const file = join(folder, `${user}.yaml`);
    await writeFile(file, kubeconfigText({ server, ca, token: tokens[user], name: 'test' }), { mode: 0o600 });
  }
  const start = ({ args, user = 'admin', editor }: Command): ReturnType<typeof spawn> =>
    spawn(program, args, {
      cwd: folder,
      env: {
        PATH: process.env['PATH'],
        HOME: folder,
        TMPDIR: folder,
        KUBECONFIG: join(folder, `${user}.yaml`),
        KUBECACHEDIR: join(folder, 'cache', user),
        KUBERC: 'off',
        ...(editor === undefined ? {} : { KUBE_EDITOR: editor }),
      },
      stdio: 'pipe',
      timeout: 30_000,
    });
  return {
    async run(command) {
      for (const [name, text] of Object.entries(command.files ?? {})) {
        await writeFile(join(folder, name), text);
      }
      const child = start(command);
      const output = { stdout: '', stderr: '' };
      child.stdout?.setEncoding('utf8').on('data', (text: string) => (output.stdout += text));
      child.stderr?.setEncoding('utf8').on('data', (text: string) => (output.stderr += text));
      child.stdin?.on('error', () => undefined);
      child.stdin?.end(command.stdin ?? '');
      const { promise, resolve, reject } = Promise.withResolvers<number>();
      child.once('error', reject);
      child.once('close', (code) => resolve(code ?? -1));
      return { code: await promise, ...output };
    },
    async watch(command, lines, meanwhile) {
      const child = start(command);
      let printed = '';
      let isBusy = false;
      const { promise, resolve } = Promise.withResolvers<void>();
      child.stdout?.setEncoding('utf8').on('data', (text: string) => {
        printed += text;
        if (!isBusy) {
          isBusy = true;
          meanwhile().catch(() => child.kill());
        }
        if (printed.split('\n').length > lines) {
          child.kill();
        }
      });
      child.once('close', () => resolve());
      await promise;
      return printed.split('\n').slice(0, lines).join('\n');
    },
    async [Symbol.asyncDispose]() {
      await stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
