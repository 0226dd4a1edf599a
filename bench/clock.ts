// What time is measured by.

/**
 * Gives a moment in ms: of the clock, or of what this process has had of the processors, which leaves out what
 * other programs do beside it and means something for work on one thread only.
 */
export function clock(ofProcess: boolean): () => number {
  if (!ofProcess) return () => performance.now();
  return () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1000;
  };
}
