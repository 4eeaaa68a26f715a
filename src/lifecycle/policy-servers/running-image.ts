/**
 * Whether an image is Kubewarden's own policy server, wherever it is mirrored: `ghcr.io/kubewarden/policy-server:v1.2.3`, or a
 * repository below. It does not know how to be a replica.
 */
export function isKubewardenImage(image: string): boolean {
  const [beforeDigest = ''] = image.split('@', 1);
  const folders = beforeDigest.split('/');
  // A colon before the last slash is that of a port.
  const [name = ''] = (folders.pop() ?? '').split(':', 1);
  return name === 'policy-server' && folders.includes('kubewarden');
}

/** The image that pods of a PolicyServer run: as it says, unless that is Kubewarden's own. */
export function runningImage(image: string, ownImage: string): string {
  return isKubewardenImage(image) ? ownImage : image;
}
