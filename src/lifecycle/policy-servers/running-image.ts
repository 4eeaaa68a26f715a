/**
 * Whether an image is Kubewarden's policy server, on any registry or mirror: `ghcr.io/kubewarden/policy-server:v1.2.3`.
 * It does not support the replica protocol.
 */
export function isKubewardenImage(image: string): boolean {
  const [beforeDigest = ''] = image.split('@', 1);
  const folders = beforeDigest.split('/');
  // A colon before the last slash separates a port.
  const [name = ''] = (folders.pop() ?? '').split(':', 1);
  return name === 'policy-server' && folders.includes('kubewarden');
}

/** The image of the pods of a PolicyServer: that of the spec, unless it is Kubewarden's. */
export function runningImage(image: string, ownImage: string): string {
  return isKubewardenImage(image) ? ownImage : image;
}
