"""emoglot in other libraries; importing a module of this folder registers emoglot with the library of that name."""
