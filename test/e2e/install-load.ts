// Load on an installation: reviews that are sent to the Service of the policy server, as an API server does, and requests to the
// API server. A policy rejects each of them.
import assert from 'node:assert/strict';
import { Agent, request } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import type { KubernetesObject } from '../cluster/cluster.ts';
import { configMapReview } from '../lifecycle/config-map-review.ts';
import { type InstallLab, NAMESPACE, POLICY_SERVER } from './install-lab.ts';

/** Reviews per second that are sent to the Service. */
const PER_SECOND = 1_000;
/** Interval at which due reviews are sent. Milliseconds. */
const PACE_MS = 4;
/** Connections to the Service. */
const MAX_SOCKETS = 64;
/** Maximum number of concurrent reviews, so that a slow machine gets as many as it can evaluate, and is not overloaded. */
const MAX_IN_FLIGHT = 128;
/** The load ends after this time, even if the test hangs. Milliseconds. */
const MAX_LOAD_MS = 120_000;
/** Time in which an API server notices a changed webhook configuration. Milliseconds. */
const CONFIGURATION_MS = 200;
/** Pause between two requests to the API server. Milliseconds. */
const PAUSE_MS = 10;
/** Maximum number of messages of failed requests in a report. */
const KEPT_MESSAGES = 5;

/** The label of namespaces that the policy matches. */
export const GUARDED = { 'e2e.portcullis.dev/guarded': 'true' };
const MESSAGE = 'refused by the guard';

/** The policy that rejects all ConfigMaps in guarded namespaces. */
export const GUARD = {
  apiVersion: 'policies.kubewarden.io/v1',
  kind: 'ClusterAdmissionPolicy',
  metadata: { name: 'guard' },
  spec: {
    module: 'builtin:cel',
    mutating: false,
    rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'], operations: ['CREATE'] }],
    namespaceSelector: { matchLabels: GUARDED },
    settings: { validations: [{ expression: 'false', message: MESSAGE }] },
  },
};

/** The results of the requests. */
export interface LoadReport {
  readonly reviewed: { readonly direct: number; readonly throughApiServer: number };
  readonly perSecond: number;
  /** Number of requests that were admitted, so that the policy cannot have reviewed them. */
  readonly unreviewed: number;
  /** Number of requests that were neither admitted nor rejected by the policy. */
  readonly failed: number;
  readonly reasons: readonly string[];
}

type Way = 'direct' | 'throughApiServer';

interface Configuration extends KubernetesObject {
  readonly webhooks?: readonly {
    readonly name: string;
    readonly clientConfig: { readonly caBundle?: string; readonly service?: { readonly path?: string } };
    readonly rules: readonly { readonly resources: readonly string[] }[];
  }[];
}

export class InstallLoad implements AsyncDisposable {
  readonly #lab: InstallLab;
  readonly #namespace: string;
  readonly #began = performance.now();
  readonly #reviewed = { direct: 0, throughApiServer: 0 };
  readonly #reasons: string[] = [];
  #failed = 0;
  #unreviewed = 0;
  #isOver = false;
  #agent = new Agent();
  #caBundle = '';
  #path = '';
  #address = '';
  #running: Promise<unknown> = Promise.resolve();

  private constructor(lab: InstallLab, namespace: string) {
    this.#lab = lab;
    this.#namespace = namespace;
  }

  /** Starts requests that create ConfigMaps in this namespace, which is {@link GUARDED}. */
  static async start(lab: InstallLab, namespace: string, { perSecond = PER_SECOND } = {}): Promise<InstallLoad> {
    const load = new InstallLoad(lab, namespace);
    await load.#configure();
    setTimeout(() => (load.#isOver = true), MAX_LOAD_MS).unref();
    load.#running = Promise.all([load.#follow(), load.#pace(perSecond), load.#throughApiServer()]);
    return load;
  }

  async end(): Promise<LoadReport> {
    this.#isOver = true;
    await this.#running;
    this.#agent.destroy();
    const seconds = (performance.now() - this.#began) / 1000;
    return {
      reviewed: this.#reviewed,
      perSecond: Math.round(this.#reviewed.direct / seconds),
      unreviewed: this.#unreviewed,
      failed: this.#failed,
      reasons: this.#reasons,
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end();
  }

  /** Reads what an API server uses for a call: the address of the Service, and the path and CAs of the webhook. */
  async #configure(): Promise<void> {
    const { spec } = await this.#lab.get<{ spec: { clusterIP: string } }>(
      `/api/v1/namespaces/${NAMESPACE}/services/${POLICY_SERVER}`,
    );
    const { items } = await this.#lab.get<{ items: readonly Configuration[] }>(
      '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations?labelSelector=portcullis.dev%2Fpolicy-server%3Ddefault',
    );
    // The guard may share its webhook with other policies.
    const webhook = items
      .flatMap(({ webhooks }) => webhooks ?? [])
      .find(({ rules }) => rules.some(({ resources }) => resources.includes('configmaps')));
    const { caBundle, service } = webhook?.clientConfig ?? {};
    if (caBundle === undefined || service?.path === undefined) {
      assert.fail(`no webhook for config maps in ${JSON.stringify(items)}`);
    }
    this.#address = spec.clusterIP;
    this.#path = service.path;
    if (caBundle !== this.#caBundle) {
      this.#caBundle = caBundle;
      // Requests in flight continue on their connections.
      this.#agent = new Agent({
        keepAlive: true,
        maxSockets: MAX_SOCKETS,
        ca: Buffer.from(caBundle, 'base64').toString(),
        servername: `${POLICY_SERVER}.${NAMESPACE}.svc`,
      });
    }
  }

  async #follow(): Promise<void> {
    while (!this.#isOver) {
      await sleep(CONFIGURATION_MS);
      await this.#configure();
    }
  }

  async #pace(perSecond: number): Promise<void> {
    const underWay = new Set<Promise<void>>();
    const began = performance.now();
    let sent = 0;
    while (!this.#isOver) {
      const due = Math.floor(((performance.now() - began) * perSecond) / 1000);
      for (let free = MAX_IN_FLIGHT - underWay.size; sent < due && free > 0; sent += 1, free -= 1) {
        const review = this.#direct(sent).then((answer) => this.#count('direct', answer));
        underWay.add(review);
        void review.finally(() => underWay.delete(review));
      }
      // Reviews that could not be sent in time are skipped.
      sent = due;
      await sleep(PACE_MS);
    }
    await Promise.all(underWay);
  }

  async #throughApiServer(): Promise<void> {
    const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { generateName: 'asked-' } };
    while (!this.#isOver) {
      const answer = await this.#lab.answer(`/api/v1/namespaces/${this.#namespace}/configmaps`, object);
      this.#count('throughApiServer', answer === '201' ? 'admitted' : answer);
      await sleep(PAUSE_MS);
    }
  }

  #count(way: Way, answer: string): void {
    if (answer.includes(MESSAGE)) {
      this.#reviewed[way] += 1;
    } else if (answer === 'admitted') {
      this.#unreviewed += 1;
    } else {
      this.#failed += 1;
      if (this.#reasons.length < KEPT_MESSAGES) {
        const seconds = ((performance.now() - this.#began) / 1000).toFixed(1);
        this.#reasons.push(`${way}, after ${seconds} s: ${answer}`);
      }
    }
  }

  #direct(count: number): Promise<string> {
    const { promise, resolve } = Promise.withResolvers<string>();
    const [namespace, name] = [this.#namespace, `asked-${count}`];
    const body = configMapReview({ count, namespace, name, username: 'e2e' });
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
    const options = { host: this.#address, port: 443, path: `${this.#path}?timeout=10s`, agent: this.#agent };
    const post = request({ ...options, method: 'POST', headers }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
      response.on('error', (error) => resolve(error.message));
      response.on('end', () => {
        const isAdmitted = response.statusCode === 200 && text.includes('"allowed":true');
        resolve(isAdmitted ? 'admitted' : `${response.statusCode} ${text}`);
      });
    });
    post.on('error', (error) => resolve(error.message));
    post.end(body);
    return promise;
  }
}
