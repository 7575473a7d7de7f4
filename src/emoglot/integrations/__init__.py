"""emoglot inside other libraries; importing a module of this folder registers emoglot with the library of its name."""
