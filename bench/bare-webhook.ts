// A minimal webhook on node:https. It allows every review; at /patch, it also adds a label to the object.
// Runs as a process: node bare-webhook.ts CERT KEY prints its port, and ends when its stdin ends.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';

const [certFile = '', keyFile = ''] = process.argv.slice(2);

const PATCH = Buffer.from(JSON.stringify([{ op: 'add', path: '/metadata/labels/bench', value: 'labelled' }])).toString(
  'base64',
);

const server = createServer(
  { cert: readFileSync(certFile), key: readFileSync(keyFile), noDelay: true },
  (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const review = JSON.parse(Buffer.concat(chunks).toString()) as { readonly request: { readonly uid: string } };
      const answer = JSON.stringify({
        apiVersion: 'admission.k8s.io/v1',
        kind: 'AdmissionReview',
        response: {
          uid: review.request.uid,
          allowed: true,
          ...(request.url?.startsWith('/patch') === true ? { patchType: 'JSONPatch', patch: PATCH } : {}),
        },
      });
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(answer) });
      response.end(answer);
    });
  },
);
server.listen(0, '127.0.0.1', () => process.stdout.write(`${(server.address() as AddressInfo).port}\n`));
process.stdin.on('end', () => process.exit(0)).resume();
