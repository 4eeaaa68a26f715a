// A mutating webhook that is not part of the product. It adds a container to pods.
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import type { KubernetesObject } from '../cluster/cluster.ts';
import { createLoopbackCertificate } from '../cluster/loopback-certificate.ts';
import { webhookConfiguration } from '../cluster/webhook-configuration.ts';

interface Review {
  readonly request: {
    readonly uid: string;
    readonly object: { readonly spec: { readonly containers: readonly { readonly name: string }[] } };
  };
}

export interface SidecarWebhook extends AsyncDisposable {
  /** A configuration that calls it for pods in namespaces with these labels. */
  configuration(name: string, labels: Readonly<Record<string, string>>): KubernetesObject;
}

export async function startSidecarWebhook(): Promise<SidecarWebhook> {
  const certificate = await createLoopbackCertificate();
  const server = createServer(certificate, (request, response) => {
    void json(request).then((body) => {
      const { uid, object } = (body as Review).request;
      const isThere = object.spec.containers.some(({ name }) => name === 'sidecar');
      const value = { name: 'sidecar', image: 'example.com/mesh/proxy:1.0' };
      const patch = isThere ? [] : [{ op: 'add', path: '/spec/containers/-', value }];
      const verdict = {
        uid,
        allowed: true,
        patchType: 'JSONPatch',
        patch: Buffer.from(JSON.stringify(patch)).toString('base64'),
      };
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response: verdict }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    configuration: (name, labels) =>
      webhookConfiguration({
        name,
        kind: 'mutating',
        url: `https://127.0.0.1:${(server.address() as AddressInfo).port}/`,
        caBundle: certificate.cert,
        rules: [{ operations: ['CREATE'], resources: ['pods'] }],
        namespaceSelector: { matchLabels: labels },
      }),
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
