#!/bin/sh
# Trains the transformer by the ranks of a Slurm job: sbatch examples/distributed/slurm.sh
# srun starts them and gives each a PMI, by which the MPI of the cluster finds the others.
#SBATCH --job-name=sinter
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=4
#SBATCH --time=01:00:00

# Seconds that a rank waits for the others before all of them stop.
export SINTER_COLLECTIVE_TIMEOUT=300

# `srun --mpi=list` names what your Slurm was built with. MPICH takes pmi2.
srun --mpi=pmix node --import tsx examples/distributed/transformer.ts --parallel data
